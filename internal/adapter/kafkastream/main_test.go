//go:build servers

package kafkastream

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/servers"
)

// patience bounds every wait; nothing takes that long.
const patience = 30 * time.Second

// takeover is as short as busy machines allow.
const takeover = 3 * time.Second

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

func broker(t testing.TB, addr string) Broker {
	return Broker{Addrs: []string{addr}, Log: logger(t)}
}

var topics atomic.Int64

// fresh is the name of a topic that no other test has.
func fresh(t testing.TB, b Broker, partitions int, settings map[string]string) string {
	t.Helper()
	name := fmt.Sprintf("topic-%d", topics.Add(1))
	if err := b.CreateTopic(t.Context(), name, partitions, settings); err != nil {
		t.Fatal(err)
	}
	return name
}

func write(t testing.TB, b Broker, messages ...serving.StreamMessage) {
	t.Helper()
	p, err := b.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Write(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
}

// read is all that is committed in a topic.
func read(t testing.TB, b Broker, topic string) []serving.StreamRecord {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		all, err := readAll(t.Context(), b, topic)
		if err == nil {
			return all
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func readAll(ctx context.Context, b Broker, topic string) (all []serving.StreamRecord, err error) {
	r, err := b.NewReader(ctx, topic, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		records, err := r.Next(ctx, 1000)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
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

func TestStream(t *testing.T) {
	contract.Stream(t, func(t *testing.T, private bool) contract.StreamBroker {
		server := shared.start(t)
		if private {
			server = own(t, servers.KafkaOptions{})
		}
		b := broker(t, server.Addr)
		in, out, other := fresh(t, b, 4, nil), fresh(t, b, 3, nil), fresh(t, b, 1, nil)
		joinFor := func(b Broker, name string, takeover time.Duration) contract.StreamConsumer {
			c, err := Join(b, Group{Name: in, Member: name, Streams: []string{in}, Takeover: takeover})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		return contract.StreamBroker{
			In: []string{in}, Out: []string{out, other}, Ordered: true, Takeover: takeover, Largest: 1 << 20,
			Join: func(name string, wire *contract.Wire) contract.StreamConsumer {
				wired := b
				wired.dial = wire.Dial
				return joinFor(wired, name, takeover)
			},
			JoinFor: func(name string, takeover time.Duration) contract.StreamConsumer {
				return joinFor(b, name, takeover)
			},
			Write: func(messages []serving.StreamMessage) { write(t, b, messages...) },
			Read:  func(stream string) []serving.StreamRecord { return read(t, b, stream) },
			Follow: func(ctx context.Context, stream string) (contract.StreamReader, error) {
				return b.NewReader(ctx, stream, true)
			},
			Restart: func() {
				server.Kill()
				if err := server.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			Library: filepath.Join("twmb", "franz-go"),
		}
	})
}
