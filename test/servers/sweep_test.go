//go:build servers

package servers

import (
	"slices"
	"testing"
)

// TestSweep finds a Redis, which hides its environment, and ends it.
func TestSweep(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := Redis(dir+"/redis", port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := Leftovers(dir); !slices.Contains(left, s.PID()) {
		t.Errorf("process %d is not among those below its folder: %v", s.PID(), left)
	}
	Sweep(dir)
	<-s.done
	if left := Leftovers(dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
