package usage

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

var key = serving.UsageKey{App: "a"}

func failure(c serving.Cause) *serving.Failure { return &serving.Failure{Cause: c, Message: "why"} }

func TestCounterCounts(t *testing.T) {
	var c Counter
	if u := c.Take(key); !u.Empty() || u.Key != key {
		t.Errorf("before any: %+v", u)
	}
	at := time.Unix(1e9, 123_456_789)
	c.Ended(nil, at, 1500*time.Nanosecond)
	c.Ended(nil, at, 2600*time.Nanosecond)
	c.Cached()
	for cause := range serving.Causes() {
		if cause > 0 {
			c.Ended(failure(serving.Cause(cause)), at.Add(time.Duration(cause)*time.Second), time.Hour)
		}
	}
	u := c.Take(key)
	last := u.Last
	u.Last = nil
	want := serving.Usage{Key: key, Answers: 2, Cached: 1, Failed: 3, Missed: 6, Micros: 4, Least: 1500, Most: 2600}
	if u != want {
		t.Errorf("got %+v, want %+v", u, want)
	}
	if last == nil || last.Cause != "bad_input" || last.Message != "Bad input: why" || last.At != time.Unix(1e9+int64(serving.BadInput), 123e6).UTC() {
		t.Errorf("the last failure is %+v", last)
	}
	c.Ended(nil, at, 900)
	want = serving.Usage{Key: key, Answers: 1, Micros: 1, Least: 900, Most: 900} // 100 ns are from before
	if u := c.Take(key); u != want {
		t.Errorf("got %+v, want %+v", u, want)
	}
	if u := c.Take(key); !u.Empty() {
		t.Errorf("after all: %+v", u)
	}
}

func TestNilCounterCountsNothing(t *testing.T) {
	var c *Counter
	c.Ended(nil, time.Now(), 1)
	c.Ended(failure(serving.ModelError), time.Now(), 1)
	c.Cached()
}

func TestTimesOfNothing(t *testing.T) {
	var s Spread
	s.Add(0)
	s.Add(-time.Second)
	s.Add(5)
	if least, most := s.Take(); least != 1 || most != 5 {
		t.Errorf("from %v to %v", least, most)
	}
	if least, most := s.Take(); least != 0 || most != 0 {
		t.Errorf("then from %v to %v", least, most)
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	var c Counter
	c.Ended(&serving.Failure{Cause: serving.ModelError, Message: strings.Repeat("é", 10_000)}, time.Now(), 1)
	if m := c.Take(key).Last.Message; len(m) > serving.MaxUsageMessage || !strings.HasSuffix(m, "éé…") {
		t.Errorf("%d bytes: %q", len(m), m)
	}
}

// TestCounterAtOnce takes while many count: nothing is lost, and nothing is there twice.
func TestCounterAtOnce(t *testing.T) {
	const workers, each = 4, 10_000
	var c Counter
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			why := failure(serving.ModelError)
			for i := range each {
				c.Ended(nil, time.Now(), time.Duration(w*each+i+1))
				c.Ended(why, time.Now(), 0)
				c.Cached()
			}
		})
	}
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	sum := serving.Usage{Key: key}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		sum.Add(c.Take(key))
	}
	sum.Last = nil
	const n = workers * each
	if want := (serving.Usage{Key: key, Answers: n, Cached: n, Failed: n, Micros: n * (n + 1) / 2 / 1000, Least: 1, Most: n}); sum != want {
		t.Errorf("in all %+v, want %+v", sum, want)
	}
}

func BenchmarkEnded(b *testing.B) {
	var c Counter
	now := time.Now()
	b.Run("one at a time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Ended(nil, now, time.Millisecond)
		}
	})
	b.Run("all cores", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.Ended(nil, now, time.Millisecond)
			}
		})
	})
}
