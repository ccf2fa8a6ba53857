package redisstore

import (
	"log/slog"
	"testing"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// diagnose asks a server with these arguments, as a user.
func diagnose(t *testing.T, server *servers.Server, user string) (Diagnosis, error) {
	t.Helper()
	s, err := Open(t.Context(), Config{
		Server: redisclient.Server{Addrs: []string{server.Addr}, Username: user, Password: func() (string, error) { return "secret", nil }},
		Prefix: t.Name(), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer s.Close()
	return s.Diagnose(t.Context())
}

// TestDiagnoseOfOthers: what is set otherwise is told, and so is an alarm.
func TestDiagnoseOfOthers(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir(), "--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
	require.NoError(t, client(t, server).Set(t.Context(), newKeys(t.Name()).alarm, "it is lost", 0).Err())
	d, err := diagnose(t, server, "default")
	if err != nil || d.AppendOnly || d.Eviction != "allkeys-lru" || d.Alarm != "it is lost" {
		t.Errorf("got %+v, error %v", d, err)
	}
}
