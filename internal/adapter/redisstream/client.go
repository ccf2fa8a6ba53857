package redisstream

import (
	"context"
	"math/rand/v2"
	"time"
)

// retryAfter keeps processes that lost Redis at the same time from retrying at the same time.
func retryAfter() time.Duration {
	return 100*time.Millisecond + rand.N(100*time.Millisecond)
}

// ended says whether ctx has ended, or does so within a moment: connections have its deadline
// too, and may be a little earlier.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < time.Millisecond
}
