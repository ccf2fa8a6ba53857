package sidecar

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff waits between attempts, twice as long each time, with jitter.
type backoff struct {
	min, max, next time.Duration
}

func (b *backoff) reset() { b.next = 0 }

// sleep waits for the next attempt, or until ctx ends.
func (b *backoff) sleep(ctx context.Context) {
	b.next = min(max(2*b.next, b.min), b.max)
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
