package predict

import (
	"testing"
	"time"

	"topsail/gateway/cache"
)

// BenchmarkHold is a question that is held behind a thousand others and given up.
func BenchmarkHold(b *testing.B) {
	r, stop := newRig(b, func() {})
	defer stop()
	r.serves(nil, m1)
	line := r.coldQueue(m1)
	now := time.Now()
	queued := func(i int) *call {
		c := &call{coldQueue: line, flight: r.cache.Alone(make(cache.Waiter, 1)), deadline: now.Add(time.Duration(i*7919%1000) * time.Second), input: doubles(1)}
		if !line.hold(c, noReplica, false) {
			b.Fatal("there is no room")
		}
		return c
	}
	for i := range 1000 {
		queued(i)
	}
	c := queued(1000)
	line.leave(c.flight, c.deadline)
	b.ReportAllocs()
	for b.Loop() {
		line.hold(c, noReplica, false)
		if line.leave(c.flight, c.deadline) != noReplica {
			b.Fatal("it was not held")
		}
	}
}
