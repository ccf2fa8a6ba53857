package dispatch

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
)

// BenchmarkHold is a question that is held behind a thousand others and given up.
func BenchmarkHold(b *testing.B) {
	v := unserved()
	now := time.Now()
	queued := func(i int) *Call {
		c := newCall(v, cache.New(0), now.Add(time.Duration(i*7919%1000)*time.Second))
		if !v.hold(c, NoReplica, false) {
			b.Fatal("there is no room")
		}
		return c
	}
	for i := range 1000 {
		queued(i)
	}
	c := queued(1000)
	v.Leave(c.Flight, c.Respond)
	b.ReportAllocs()
	for b.Loop() {
		v.hold(c, NoReplica, false)
		if v.Leave(c.Flight, c.Respond) != NoReplica {
			b.Fatal("it was not held")
		}
	}
}
