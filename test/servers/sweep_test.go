//go:build servers

package servers

import (
	"slices"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// TestSweep finds a Redis, which hides its environment, and ends it.
func TestSweep(t *testing.T) {
	port, err := FreePort()
	require.NoError(t, err)
	dir := t.TempDir()
	s, err := Redis(dir+"/redis", port)
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	require.NoError(t, s.Start(t.Context()))
	if left := Leftovers(dir); !slices.Contains(left, s.PID()) {
		t.Errorf("process %d is not among those below its folder: %v", s.PID(), left)
	}
	Sweep(dir)
	<-s.done
	if left := Leftovers(dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
