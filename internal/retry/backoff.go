// Package retry spaces attempts at what fails.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is the wait between attempts: each plan is twice the one before it. A wait is between a
// half and all of its plan ("equal jitter"), so that callers that failed together do not retry
// together. First and Most must be positive. It is not for several goroutines.
type Backoff struct {
	First, Most time.Duration
	plan        time.Duration
}

// Next is how long to wait after one more failure.
func (b *Backoff) Next() time.Duration {
	b.plan = min(max(2*b.plan, b.First), b.Most)
	return b.plan/2 + rand.N(b.plan/2+1)
}

// Reset is called after a success.
func (b *Backoff) Reset() { b.plan = 0 }

// Sleep waits for Next, or until ctx ends, and says whether ctx goes on.
func (b *Backoff) Sleep(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Sleep waits for d, or until ctx ends, and says whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
