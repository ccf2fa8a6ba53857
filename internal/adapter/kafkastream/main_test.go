//go:build servers

package kafkastream

import (
	"context"
	"flag"
	"os"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/servers"
)

// shared is the Kafka of most tests, each of which has topics of its own. The first one
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
		if s.dir, s.err = os.MkdirTemp("", "kafkastream-*"); s.err == nil {
			s.server, s.err = launch(s.dir, servers.KafkaOptions{})
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
	code := m.Run()
	if shared.server != nil {
		shared.server.Kill()
	}
	os.RemoveAll(shared.dir)
	os.Exit(code)
}

func launch(dir string, opt servers.KafkaOptions) (*servers.Server, error) {
	port, err := servers.FreePorts(3)
	if err != nil {
		return nil, err
	}
	server, err := servers.Kafka(dir, port, opt)
	if err != nil {
		return nil, err
	}
	return server, server.Start(context.Background())
}

// own is a Kafka for a test that kills it, or asks for more.
func own(t testing.TB, opt servers.KafkaOptions) *servers.Server {
	t.Helper()
	server, err := launch(t.TempDir(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}

func TestStream(t *testing.T) {
	contract.Stream(t, func(t *testing.T, private bool) contract.StreamBroker {
		server := shared.start(t)
		if private {
			server = own(t, servers.KafkaOptions{})
		}
		b := streamBroker(t, broker(t, server.Addr))
		b.Restart = func() {
			server.Kill()
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return b
	})
}
