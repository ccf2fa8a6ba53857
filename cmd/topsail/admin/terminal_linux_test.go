package admin

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen/testterm"
)

// runOn runs a command on a terminal; the status comes when it ends.
func runOn(t *testing.T, program *os.File, args ...string) <-chan int {
	root := newRoot()
	root.SetArgs(append(args, "--timeout", "5s"))
	root.SetIn(program)
	root.SetOut(program)
	root.SetErr(program)
	status := make(chan int, 1)
	go func() { status <- Exit(root.ExecuteContext(t.Context()), program) }()
	return status
}

// TestTop holds that the live table follows events, comes back after the stream broke,
// and ends with q.
func TestTop(t *testing.T) {
	f := newFake(t)
	f.here(t)
	first := strings.Replace(stream, "data: cut off", "", 1)
	first, _, _ = strings.Cut(first, "event: later")
	f.answer("GET /api/v1/events",
		answer{status: 200, body: first},
		answer{serve: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "event: replicas\ndata: {}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}})
	replicas := "GET /api/v1/replicas?limit=1000"
	f.answers[replicas] = append(f.answers[replicas], f.answers[replicas][0], answer{status: 200, body: `{"items": [{"id": "m-1-7", "model": "m", "version": "1", "state": "ready"}]}`})
	person, program := testterm.Open(t, 120, 30)
	status := runOn(t, program, "top")
	testterm.ReadUntil(t, person, "queries to 1 app, 1234/s  1 of 2 replicas are up")
	testterm.ReadUntil(t, person, "not live: ")
	testterm.ReadUntil(t, person, "m-1-7")
	if _, err := person.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	testterm.ReadUntil(t, person, "\x1b[?1049l")
	if got := <-status; got != 0 {
		t.Errorf("it exits with %d", got)
	}
}

// TestPersonIsAsked holds that a person sees what they agree to.
func TestPersonIsAsked(t *testing.T) {
	for typed, want := range map[string]string{"y\n": "app wine is deleted", "n\n": ""} {
		f := newFake(t)
		f.here(t)
		f.answer("DELETE /api/v1/apps/wine?dry_run=true", answer{status: 200, body: `{"dry_run": true, "changes": [{"action": "delete", "kind": "app", "name": "wine"}], "effects": ["5 queries a second get 404."]}`})
		f.answer("DELETE /api/v1/apps/wine", answer{status: 204})
		person, program := testterm.Open(t, 80, 24)
		status := runOn(t, program, "app", "delete", "wine")
		if seen := testterm.ReadUntil(t, person, "[y/N] "); !strings.Contains(seen, "- app wine\r\n5 queries a second get 404.\r\nDelete app wine?") {
			t.Errorf("%q", seen)
		}
		if _, err := person.WriteString(typed); err != nil {
			t.Fatal(err)
		}
		if want != "" {
			testterm.ReadUntil(t, person, want)
		}
		if got := <-status; got != 0 || len(f.requests()) != 1+len(want)/len("app wine is deleted") {
			t.Errorf("%q: %d, %+v", typed, got, f.requests())
		}
	}
}

// TestTerminalIsNotTold holds that the output of a model does not reach the terminal as
// it is.
func TestTerminalIsNotTold(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("GET /api/v1/replicas/wine-forest-1-0/logs?lines=100", answer{status: 200, body: "a\x1b[2Jb\x07\u009b1m\tc\n"})
	person, program := testterm.Open(t, 80, 24)
	status := runOn(t, program, "logs", "wine-forest-1-0")
	if seen := testterm.ReadUntil(t, person, "\n"); !strings.HasPrefix(seen, "a?[2Jb??1m") {
		t.Errorf("%q", seen)
	}
	if got := <-status; got != 0 {
		t.Errorf("it exits with %d", got)
	}
}
