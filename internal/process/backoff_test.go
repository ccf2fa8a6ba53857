//go:build unix

package process

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoffDoubles(t *testing.T) {
	var b backoff
	const middle = 0.5 // no jitter
	for i, millis := range []int{200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000} {
		want := time.Duration(millis) * time.Millisecond
		if got := b.next(time.Second, middle); got != want {
			t.Errorf("wait %d is %v, want %v", i, got, want)
		}
	}
	if got := b.next(healthyRun-1, middle); got != lastDelay {
		t.Errorf("after a run a little too short: %v", got)
	}
	if got := b.next(healthyRun, middle); got != firstDelay {
		t.Errorf("after a healthy run: %v", got)
	}
	b.next(0, middle)
	b.reset()
	if got := b.next(0, middle); got != firstDelay {
		t.Errorf("after reset: %v", got)
	}
}

func TestBackoffJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := backoff{delay: time.Duration(rapid.Int64Range(int64(firstDelay), int64(lastDelay)).Draw(t, "delay"))}
		got := b.next(0, rapid.Float64Range(0, 1).Draw(t, "r"))
		if lo, hi := b.delay*79/100, b.delay*121/100; got < lo || got > hi {
			t.Fatalf("wait %v is not within a fifth of %v", got, b.delay)
		}
	})
}
