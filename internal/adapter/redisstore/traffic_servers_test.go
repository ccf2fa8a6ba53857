//go:build servers

package redisstore

import (
	"strings"
	"testing"
)

func TestTrafficWithoutRedis(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir())
	s := open(t, configOf(server))
	server.Stop()
	if _, err := s.LoadTraffic(t.Context()); err == nil || !strings.Contains(err.Error(), "load the past of the charts") {
		t.Errorf("error %v", err)
	}
	if err := s.SaveTraffic(t.Context(), []byte("x")); err == nil || !strings.Contains(err.Error(), "save the past of the charts") {
		t.Errorf("error %v", err)
	}
}
