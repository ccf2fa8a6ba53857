package redisstream

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/brokers"
	"github.com/topsail-serving/topsail/test/servers"
)

// patience bounds every wait; nothing takes that long.
const patience = time.Minute

// takeover is as short as busy machines allow.
const takeover = 2 * time.Second

// shared is the Redis of most tests, each of which has streams of its own. The first one
// that asks for it starts it.
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
		if s.dir, s.err = os.MkdirTemp("", "redisstream-*"); s.err == nil {
			s.server, s.err = launch(s.dir)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "12") // they wait more than they work
	redisclient.LogTo(slog.New(slog.DiscardHandler))
	code := m.Run()
	if shared.server != nil {
		shared.server.Kill()
	}
	os.RemoveAll(shared.dir)
	os.Exit(code)
}

func launch(dir string, args ...string) (*servers.Server, error) {
	port, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	server, err := servers.Redis(dir, port, args...)
	if err != nil {
		return nil, err
	}
	return server, server.Start(context.Background())
}

// own is a Redis for a test that kills it, or asks for more.
func own(t testing.TB, args ...string) *servers.Server {
	t.Helper()
	server, err := launch(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}

func logger(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func broker(t testing.TB, addr string) Broker {
	return Broker{Server: redisclient.Server{Addrs: []string{addr}}, Log: logger(t)}
}

// client speaks to a server past the package.
func client(t testing.TB, server *servers.Server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { c.Close() })
	return c
}

var streams atomic.Int64

// fresh is the name of a stream that no other test has.
func fresh() string { return fmt.Sprintf("stream-%d", streams.Add(1)) }

func write(t testing.TB, b Broker, messages ...serving.StreamMessage) {
	t.Helper()
	if err := brokers.Redis(b.Server).Write(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
}

// read is all of a stream.
func read(t testing.TB, b Broker, stream string) []serving.StreamRecord {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all, err := brokers.Redis(b.Server).Read(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func join(t testing.TB, b Broker, g Group) *Consumer {
	t.Helper()
	c, err := Join(b, g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// pair are the results of records: a message each, or all of them with the last one.
func pair(records []serving.StreamRecord, messages []serving.StreamMessage) []serving.StreamResult {
	results := make([]serving.StreamResult, len(records))
	for i := range records {
		results[i].Record = &records[i]
		if len(messages) == len(records) {
			results[i].Messages = messages[i : i+1]
		}
	}
	if n := len(records); n > 0 && len(messages) != n {
		results[n-1].Messages = messages
	}
	return results
}

// try commits once.
func try(ctx context.Context, c *Consumer, records []serving.StreamRecord, messages []serving.StreamMessage) error {
	waiting, err := c.Commit(ctx, pair(records, messages))
	if err == nil && len(waiting) > 0 {
		err = fmt.Errorf("%d records have to wait", len(waiting))
	}
	return err
}
