package demand

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestIntegral compares with a count that is added up microsecond by microsecond
// in effect: exact at any take, over more time than the word can hold.
func TestIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f flying
		now := rapid.Int64Range(0, 1<<50).Draw(t, "start") // µs: the sum wraps
		clock := func() time.Duration { return time.Duration(now) * time.Microsecond }
		f.take(clock)
		var open, want int64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			passed := rapid.Int64Range(0, 500_000).Draw(t, "µs")
			now += passed
			want += open * passed
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				n := rapid.Int64Range(1, 1000).Draw(t, "beginnings")
				for range n {
					f.begin(clock())
				}
				open += n
			case 1:
				if open > 0 {
					f.end(clock())
					open--
				}
			case 2:
				if got := f.take(clock); got != time.Duration(want)*time.Microsecond {
					t.Fatalf("integral of %v, want %d µs", got, want)
				}
				want = 0
			}
		}
	})
}

// TestIntegralManyInFlight holds a million questions for ten seconds.
func TestIntegralManyInFlight(t *testing.T) {
	const questions = 1 << 20
	var f flying
	for range questions {
		f.begin(3 * time.Second)
	}
	for second := range 10 {
		now := time.Duration(4+second) * time.Second
		if got := f.take(func() time.Duration { return now }); got != questions*time.Second {
			t.Fatalf("second %d: %v, want %v", second, got, questions*time.Second)
		}
	}
}

// TestIntegralEndAddedLate has an end that was read off the clock before a take and
// added after it: no take is negative, and their sum is right.
func TestIntegralEndAddedLate(t *testing.T) {
	var f flying
	at := func(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
	f.begin(0)
	sum := f.take(at(time.Second))
	f.end(time.Second - time.Millisecond)
	if got := f.take(at(2 * time.Second)); got != 0 {
		t.Errorf("a take of %v", got)
	}
	f.begin(2 * time.Second)
	sum += f.take(at(3 * time.Second))
	if want := 2*time.Second - time.Millisecond; sum != want {
		t.Errorf("in all %v, want %v", sum, want)
	}
}

// TestIntegralAtOnce has many begin and end while it is taken. What is in the word
// is never torn, so that the sum over all takes is exact.
func TestIntegralAtOnce(t *testing.T) {
	const workers, each = 4, 20_000
	var f flying
	var clock atomic.Int64 // a microsecond further whenever it is looked at
	since := func() time.Duration { return time.Duration(clock.Add(1)) * time.Microsecond }
	var sums [workers]int64
	var working sync.WaitGroup
	for i := range workers {
		working.Go(func() {
			for range each {
				from, to := since(), since()
				f.begin(from)
				f.end(to)
				sums[i] += to.Microseconds() - from.Microseconds()
			}
		})
	}
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	var got time.Duration
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		grown := f.take(since)
		if grown > time.Duration(workers)*since() {
			t.Fatalf("a take of %v", grown)
		}
		got += grown
	}
	f.begin(0) // an end may have come so late that the integral shrank: the next take has that
	f.end(time.Second)
	got += f.take(since)
	want := time.Second.Microseconds()
	for _, s := range sums {
		want += s
	}
	if got.Microseconds() != want {
		t.Errorf("%v, want %d µs", got, want)
	}
}
