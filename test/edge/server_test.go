//go:build edge

package edge

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// server is a `topsail local` that is attacked.
type server struct {
	cmd               *exec.Cmd
	gateway, web, ops string      // addresses
	grpc              string      // another; empty: it has no port for gRPC
	tls               *tls.Config // nil: it does not speak TLS
	exited            chan struct{}
	steady            *steady // asks it all the time
	reference         *steady // asks a bare server in the same way
	first             state   // when it had just begun to serve
	out               journal.Journal
}

const patience = 30 * time.Second

var (
	grpcAddr = regexp.MustCompile(`gRPC +(\S+)`)
	ready    = regexp.MustCompile(`(?s)Gateway +https?://(\S+).*Web UI +https?://([^/]+)/.*Metrics +https?://([^/]+)/`)
)

// start runs a server with lines for its table [gateway] and more apps, and a steady client beside
// it. It waits until it is warm.
func start(t *testing.T, lines string, secure bool, more ...string) *server {
	t.Helper()
	dir := t.TempDir()
	config := apps() + strings.Join(more, "")
	if !*bare {
		config = fmt.Sprintf(settings, budget, lines) + config
	}
	s := &server{exited: make(chan struct{})}
	if secure {
		authority := testca.New(t, "edge")
		pair, roots := authority.Issue(t, "127.0.0.1"), x509.NewCertPool()
		roots.AppendCertsFromPEM(authority.PEM)
		s.tls = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
		config = fmt.Sprintf("[tls]\ncert_file = %q\nkey_file = %q\n", testca.Write(t, dir, "cert.pem", pair.Cert), testca.Write(t, dir, "key.pem", pair.Key)) + config
	}
	file := filepath.Join(dir, "topsail.toml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	s.cmd = exec.Command(programs.topsail, "local", "--config", file, "--data-dir", filepath.Join(dir, "data"),
		"--gateway-addr", "127.0.0.1:0", "--web-addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0")
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	require.NoError(t, s.cmd.Start())
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		s.cmd.Process.Signal(os.Interrupt)
		select {
		case <-s.exited:
		case <-time.After(patience):
			s.cmd.Process.Kill()
			<-s.exited
		}
		if t.Failed() {
			t.Logf("its output ends with:\n%s", tail(s.out.String(), 30))
		}
	})
	wait.Until(t, "the greeting", func() bool { return strings.Contains(s.out.String(), "Stop with Ctrl-C") }, s.out.String)
	found := ready.FindStringSubmatch(s.out.String())
	s.gateway, s.web, s.ops = found[1], found[2], found[3]
	if found = grpcAddr.FindStringSubmatch(s.out.String()); found != nil {
		s.grpc = found[1]
	}
	s.steady = startSteady(func() (net.Conn, error) { return s.dial(s.gateway) })
	t.Cleanup(s.steady.end)
	s.reference = startSteady(startReference(t))
	t.Cleanup(s.reference.end)
	for _, app := range []string{"target", "learns", "large"} { // how large answers are is known by the last ones
		if status, _, body, err := s.one(s.gateway, post("/"+app+"/predict", `{"input":[0]}`)); status != 200 {
			t.Fatalf("%s: %d %.200s %v", app, status, body, err)
		}
	}
	time.Sleep(warm)
	s.first = s.state(t)
	return s
}

// warm is how long a server serves before it is measured.
const warm = 2 * time.Second

// dial connects to one of the server's addresses, with TLS where it has that.
func (s *server) dial(addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: time.Second}
	if s.tls != nil {
		return tls.DialWithDialer(&d, "tcp", addr, s.tls)
	}
	return d.Dial("tcp", addr)
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
