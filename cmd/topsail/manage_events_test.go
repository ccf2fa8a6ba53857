//go:build system

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/web/api"
)

// event is one of the stream of events.
type event struct {
	kind string
	data []byte
}

// follow reads the stream of events until the test ends, or the stream does: then the
// channel is closed.
func (o *operator) follow() <-chan event {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.setting("TOPSAIL_ADMIN_URL")+"/api/v1/events", nil)
	if err != nil {
		o.t.Fatal(err)
	}
	o.show(request)
	response, err := o.client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		o.t.Fatalf("the events cannot be followed: %v %+v", err, response)
	}
	events := make(chan event)
	o.t.Cleanup(func() {
		cancel()
		for range events { // until the reader has ended
		}
	})
	go func() {
		defer close(events)
		defer response.Body.Close()
		var e event
		for lines := bufio.NewReader(response.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch name {
			case "event":
				e.kind = value
			case "data":
				e.data = []byte(value)
			case "":
				select {
				case events <- e:
				case <-ctx.Done():
				}
				e = event{}
			}
		}
	}()
	return events
}

// next waits for an event of a kind that is as wanted.
func next[T any](t *testing.T, events <-chan event, kind string, wanted func(T) bool) T {
	t.Helper()
	for e := range events {
		if e.kind != kind {
			continue
		}
		var data T
		if err := json.Unmarshal(e.data, &data); err != nil {
			t.Fatalf("event %s: %v in %s", kind, err, e.data)
		}
		if wanted(data) {
			return data
		}
	}
	t.Fatalf("the stream ended without the event %q that is waited for", kind)
	panic("unreachable")
}

// notice is what an event says has changed.
type notice struct {
	Revision uint64
	Changed  []struct{ Kind, Name string }
}

// names says whether an event names an object.
func names(kind, name string) func(notice) bool {
	return func(n notice) bool {
		return slices.Contains(n.Changed, struct{ Kind, Name string }{kind, name})
	}
}

// becomes reads a replica again each time that an event names it, until it is as wanted.
func (o *operator) becomes(events <-chan event, id string, wanted func(api.Replica) bool) {
	o.t.Helper()
	next(o.t, events, "replicas", func(n notice) bool {
		return names("replica", id)(n) && wanted(get[api.Replica](o, "/replicas/"+id))
	})
}

// TestAReplicaDiesAndComesBack kills a container, which starts again when it is told to,
// and watches.
func TestAReplicaDiesAndComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	may := filepath.Join(dir, "may-start")
	allow := func() {
		t.Helper()
		if err := os.WriteFile(may, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := fmt.Sprintf("until rm %q; do sleep 0.02; done 2>/dev/null; exec %s", may, programs.gosum)
	allow()
	o := operate(t, start(t, dir, sumConfig(dir, quoted("sh", "-c", command))))
	victim := o.ready("sum:1", 1)[0]
	events := o.follow()
	next(t, events, "hello", func(h struct{ Me api.Me }) bool { return h.Me.Mode == "local" })

	if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o.becomes(events, victim.ID, func(r api.Replica) bool { return r.State != "ready" && strings.Contains(r.Reason, "SIGKILL") })
	if out, said, _ := o.run("predict", "sum", "[3, 4]", "--slo", "1s"); out != "-1\n" || !strings.Contains(said, "the default") {
		t.Errorf("without a replica the answer is %s%s", out, said)
	}
	allow()
	o.becomes(events, victim.ID, func(r api.Replica) bool { return r.State == "ready" && r.Restarts == 1 && r.PID != victim.PID })
	now := get[api.Replica](o, "/replicas/"+victim.ID)
	if now.State != "ready" || now.Restarts != 1 || now.Reason != "" || !now.Since.After(victim.Since) {
		t.Errorf("it came back as %+v", now)
	}
	o.answers("sum", "[1, 2.5]", "3.5")
}

// TestAChangeIsToldToAll follows the events while something is deployed, and taken away.
func TestAChangeIsToldToAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := operate(t, start(t, dir, ""))
	events := o.follow()
	o.do("deploy", "sum", "--input-type", "doubles", "--app", "sums", "--", programs.gosum)
	next(t, events, "catalog", names("model", "sum"))
	next(t, events, "catalog", names("app", "sums"))
	o.do("version", "scale", "sum:1", "2")
	next(t, events, "decision", names("version", "sum:1"))
	o.do("app", "delete", "sums", "--yes")
	next(t, events, "catalog", names("app", "sums"))
	next(t, events, "traffic", func(notice) bool { return true })
}
