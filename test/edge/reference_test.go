//go:build edge

package edge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// referenceKind is the model that is a bare HTTP server instead.
const referenceKind = "reference"

// serveReference answers like the steady app, as long in all, and does nothing else: what its clients wait for is
// the machine.
func serveReference() int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "edge:", err)
		return 1
	}
	fmt.Println(ln.Addr())
	err = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var query struct {
			Input []float64 `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&query); err != nil || len(query.Input) != 2 {
			http.Error(w, "want two numbers", http.StatusBadRequest)
			return
		}
		time.Sleep(inputTakes)
		fmt.Fprintf(w, `{"output": %v}`, query.Input[0]+query.Input[1])
	}))
	fmt.Fprintln(os.Stderr, "edge:", err)
	return 1
}

// startReference starts a bare server, and says how to dial it.
func startReference(t *testing.T) (dial func() (net.Conn, error)) {
	t.Helper()
	cmd := exec.Command(programs.model)
	cmd.Env = append(os.Environ(), modelKind+"="+referenceKind)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the bare server does not start: %v", err)
	}
	return func() (net.Conn, error) { return net.DialTimeout("tcp", strings.TrimSpace(addr), time.Second) }
}
