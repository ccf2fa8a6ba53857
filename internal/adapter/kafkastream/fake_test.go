package kafkastream

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/topsail-serving/topsail/test/pipes"
)

// fake is a Kafka in memory, which can fail.
type fake struct {
	broker  Broker
	cluster *kfake.Cluster
	network pipes.Network
	said    buffer

	mu      sync.Mutex    // guards the following
	late    time.Duration // after which it looks at a request
	changed chan struct{} // closed at the next change
	conns   []net.Conn
}

// How late a broker may be.
const (
	works   = time.Duration(0)
	freezes = time.Duration(math.MaxInt64)
	closes  = time.Duration(-1) // it ends connections instead
)

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{changed: make(chan struct{})}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return listener{f.network.Listen(), f}, nil }),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.set(closes)
		cluster.Close()
	})
	f.cluster = cluster
	f.broker.Addrs = cluster.ListenAddrs()
	f.broker.Log = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &f.said), nil))
	f.broker.dial = func(ctx context.Context, _, addr string) (net.Conn, error) { return f.network.Dial(ctx, addr) }
	return f
}

// begin has a group be known, without a member. kfake fails questions about others; Kafka has no offsets of them.
func (f *fake) begin(t *testing.T, group, topic string) {
	t.Helper()
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, 0, -1)
	if err := admin(t, f.broker).CommitAllOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
}

func (f *fake) set(late time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = late
	close(f.changed)
	f.changed = make(chan struct{})
	if late == closes {
		for _, conn := range f.conns {
			conn.Close()
		}
		f.conns = nil
	}
}

// wait waits for as long as a request has to that has just come.
func (f *fake) wait() {
	for came := time.Now(); ; {
		f.mu.Lock()
		late, changed := f.late, f.changed
		f.mu.Unlock()
		left := late - time.Since(came)
		if left <= 0 {
			return
		}
		select {
		case <-changed:
		case <-time.After(left):
		}
	}
}

// took takes in a connection.
func (f *fake) took(c net.Conn) net.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns = append(f.conns, c)
	if f.late == closes {
		c.Close()
	}
	return &conn{c, bufio.NewReaderSize(c, 64<<10), f}
}

type listener struct {
	net.Listener
	of *fake
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.of.took(c), nil
}

// conn has what is sent wait, as in the buffer of a kernel.
type conn struct {
	net.Conn
	sent *bufio.Reader
	of   *fake
}

func (c *conn) Read(b []byte) (int, error) {
	if c.sent.Buffered() == 0 {
		_, _ = c.sent.Peek(1)
		c.of.wait()
	}
	return c.sent.Read(b)
}
