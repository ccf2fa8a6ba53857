package load

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

func TestMaxRate(t *testing.T) {
	rate, err := MaxRate(t.Context())
	require.NoError(t, err)
	if rate < 100 || rate > maxRate {
		t.Errorf("%g requests per second", rate)
	}
	mustLeaveNoGoroutine(t)
}

func TestMaxRateEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MaxRate(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	mustLeaveNoGoroutine(t)
}

// The work of one request, server included.
func BenchmarkPost(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var serving sync.WaitGroup
	serving.Go(func() { serveNoop(listener, &serving) })
	b.Cleanup(serving.Wait)
	b.Cleanup(func() { listener.Close() })
	target, err := parseTarget("http://" + listener.Addr().String())
	require.NoError(b, err)
	c, body := newConn(target), []byte(`{"input":[1.0,2.0,3.0,4.0]}`)
	defer c.close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.post(b.Context(), body, time.Now().Add(time.Second)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTally(b *testing.B) {
	tally, now := newTally(), time.Now()
	reply := message{status: 200, body: []byte(noopReply)}
	b.ReportAllocs()
	for b.Loop() {
		tally.sent(now, now, now)
		tally.answered(reply, time.Millisecond)
	}
}
