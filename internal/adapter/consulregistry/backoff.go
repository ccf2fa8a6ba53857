package consulregistry

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 2 * time.Second // queries wait for what we watch
)

// backoff grows the wait between failures. The zero value is ready.
type backoff struct{ delay time.Duration }

// next is how long to wait after one more failure: a quarter more or less than
// the plan, so that those who failed together do not come back together.
func (b *backoff) next() time.Duration {
	b.delay = min(max(2*b.delay, firstDelay), lastDelay)
	return time.Duration(float64(b.delay) * (0.75 + rand.Float64()/2))
}

func (b *backoff) reset() { b.delay = 0 }

// sleep waits for d, or for less when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
