//go:build servers

package consulregistry

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// TestRestart stops Consul for a while: nothing is lost, and what changes
// afterwards is seen.
func TestRestart(t *testing.T) {
	t.Parallel()
	server, _ := own(t)
	s := open(t, server.Addr, server.Addr, time.Minute)
	all := numbered("r", 4)
	s.register(all...)
	w := s.watch()
	w.until(all...)

	server.Stop()
	<-time.After(3 * time.Second) // the outage
	require.NoError(t, server.Start(t.Context()))
	s.register("r9")
	stays(t, w.until(append(all, "r9")...), all...)

	server.Freeze()
	<-time.After(3 * time.Second)
	server.Thaw()
	s.Remove("r9")
	stays(t, w.until(all...), all...)
	if age := time.Since(s.LastAnswer()); age > 5*time.Second {
		t.Errorf("the last answer was %v ago", age)
	}
}

// TestDataLoss kills Consul and takes its data. What it knew stays until it has
// been registered again, one after the other, and what has not comes off the list
// when the hold is over.
func TestDataLoss(t *testing.T) {
	t.Parallel()
	server, wipe := own(t)
	const hold = 6 * time.Second
	s := open(t, server.Addr, server.Addr, hold)
	all := numbered("r", 5)
	s.register(all...)
	w := s.watch()
	w.until(all...)

	server.Kill()
	wipe()
	require.NoError(t, server.Start(t.Context()))
	back := time.Now()
	s.register("r1", "r3", "r4")
	s.register("new")
	stays(t, w.until("new", "r0", "r1", "r2", "r3", "r4"), all...)
	stays(t, w.until("new", "r1", "r3", "r4"), "r1", "r3", "r4")
	if took := time.Since(back); took < hold-2*time.Second {
		t.Errorf("what is missing is gone after %v", took)
	}
}
