//go:build servers

package redisstore

import (
	"fmt"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// TestWakesThroughOutage listens before there is a Redis, and while it is killed.
func TestWakesThroughOutage(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir())
	s := open(t, configOf(server))
	server.Stop()
	woken := listen(t, s)
	if err := s.Wake(t.Context(), serving.ModelID{}); err == nil {
		t.Error("woke nobody without an error")
	}
	for i := range 2 {
		restart(t, server)
		want := wake(t, s, fmt.Sprint(i))
		if got := hear(t, woken); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		server.Kill()
	}
}
