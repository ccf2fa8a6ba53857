package redisstore

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/contract"
)

func TestTrafficContract(t *testing.T) {
	contract.Traffic(t, true, func(t *testing.T) func() contract.TrafficKeeper {
		cfg := config(t)
		return func() contract.TrafficKeeper { return open(t, cfg) }
	})
}

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
