//go:build system

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/web/api"
)

// TestStreamsThatWait has no replica for what comes: the lag and a condition say so, the process
// stops at once, and what it had in flight goes to another member, once. A broker that is away is a
// condition too.
func TestStreamsThatWait(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *streamBroker) {
		const records = 300
		b.create(t, "in", "out", "dead")
		dir := t.TempDir()
		lines := strings.ReplaceAll(b.lines, "patience_micros = 50000000\n", "")
		config := func(dir, command string) string {
			return sumConfig(dir, command) + fmt.Sprintf("\n[[stream]]\nname = 'sums'\napp = 'sum'\ninput = ['in']\noutput = 'out'\ndead_letter = 'dead'\nbatch = 40\n%s", lines)
		}
		in := start(t, dir, config(dir, quoted(programs.gosum))).ready()
		o := operate(t, in)
		o.do("version", "scale", "sum:1", "0")
		in.until("no replica", func() bool { return len(list[api.Replica](o, "/replicas")) == 0 })
		if err := b.write(t.Context(), asks("in", 0, records)); err != nil {
			t.Fatal(err)
		}
		now := func() *api.StreamNow {
			if all := list[api.Stream](o, "/streams"); len(all) == 1 {
				return all[0].Now
			}
			return nil
		}
		says := func(condition string, lag int64) func() bool {
			return func() bool {
				n := now()
				return n != nil && slices.ContainsFunc(n.Conditions, func(c string) bool { return strings.HasPrefix(c, condition) }) &&
					(lag < 0 || n.Lag != nil && *n.Lag == lag) && slices.ContainsFunc(in.conditions(), func(c string) bool { return strings.Contains(c, condition) })
			}
		}
		in.until("the condition and the lag", says("cannot predict", records))
		if len(b.read(t, "out")) > 0 {
			t.Error("there are results without a replica")
		}
		b.server.Kill()
		in.until("the condition of the broker", says("cannot consume from the broker", -1))
		if err := b.server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		in.until("the broker to be consumed again", says("cannot predict", records))

		// Another member does what the first does not hold, and then the rest.
		dir = t.TempDir()
		start(t, dir, config(dir, quoted(programs.gosum))).ready()
		began := time.Now()
		in.stop(syscall.SIGTERM)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a stream that waits takes %v to stop", took)
		}
		in.until("all results", func() bool { return len(b.sums(t, "out", false)) == records })
		if dead := b.read(t, "dead"); len(dead) > 0 {
			t.Errorf("%d records are in the dead letters", len(dead))
		}
	})
}

// conditions are those that the ops port tells.
func (in *instance) conditions() []string {
	in.t.Helper()
	response, err := http.Get(strings.TrimSuffix(in.line("Metrics"), "/metrics") + "/health/ready")
	if err != nil {
		in.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Conditions []string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		in.t.Fatal(err)
	}
	return answer.Conditions
}
