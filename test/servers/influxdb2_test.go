//go:build servers

package servers

import "testing"

func TestInfluxDB2(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s, err := InfluxDB2(t.TempDir(), port, "a-secret-token")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := s.Start(t.Context()); err != nil {
		t.Error("a killed server does not come back:", err)
	}
}
