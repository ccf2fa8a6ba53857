//go:build servers

package servers

import (
	"testing"
)

// TestCluster starts every server there is, and one of them again.
func TestCluster(t *testing.T) {
	ports, err := FreePortsForAll()
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCluster(Options{Dir: t.TempDir(), Ports: ports, Clients: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Redis.Kill()
	if c.Redis.Running() {
		t.Error("a killed server runs")
	}
	if err := c.Redis.Start(t.Context()); err != nil {
		t.Error("a killed server does not come back:", err)
	}
	pid := c.Redis.PID()
	if pid == 0 || !c.Redis.Running() {
		t.Error("no process")
	}
}
