package redisstore

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// shared is the Redis of most tests, each of which has a prefix of its own. The
// first one that asks for it starts it, for fuzzing does without.
var shared sharedServer

type sharedServer struct {
	once   sync.Once
	dir    string
	server *servers.Server
	err    error
}

func (s *sharedServer) start(t testing.TB) *servers.Server {
	t.Helper()
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "redisstore-*"); s.err == nil {
			s.server, s.err = startRedis(context.Background(), s.dir)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

func (s *sharedServer) stop() {
	if s.server != nil {
		s.server.Kill()
	}
	os.RemoveAll(s.dir)
}

func TestMain(m *testing.M) {
	redisclient.LogTo(slog.New(slog.DiscardHandler))
	code := m.Run()
	shared.stop()
	os.Exit(code)
}

func startRedis(ctx context.Context, dir string, args ...string) (*servers.Server, error) {
	port, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	server, err := servers.Redis(dir, port, args...)
	if err != nil {
		return nil, err
	}
	return server, server.Start(ctx)
}

// ownRedis is a Redis for a test that stops it, or worse.
func ownRedis(t testing.TB, dir string, args ...string) *servers.Server {
	t.Helper()
	server, err := startRedis(t.Context(), dir, args...)
	require.NoError(t, err)
	t.Cleanup(server.Kill)
	return server
}

func restart(t testing.TB, server *servers.Server) {
	t.Helper()
	require.NoError(t, server.Start(t.Context()))
}

// client speaks to a server past the store.
func client(t testing.TB, server *servers.Server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// patience bounds every wait; nothing takes that long.
const patience = time.Minute
