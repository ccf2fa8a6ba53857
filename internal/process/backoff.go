//go:build unix

package process

import "time"

const (
	firstDelay = 200 * time.Millisecond
	lastDelay  = 30 * time.Second
	healthyRun = time.Minute
	jitter     = 0.2 // of the delay, to either side
)

// backoff grows the wait between starts. The zero value is ready.
type backoff struct{ delay time.Duration }

// next is how long to wait after a run that took ran. The random number r is
// from [0, 1); it keeps replicas that fail together from starting together.
func (b *backoff) next(ran time.Duration, r float64) time.Duration {
	if b.delay == 0 || ran >= healthyRun {
		b.delay = firstDelay
	} else {
		b.delay = min(2*b.delay, lastDelay)
	}
	return time.Duration(float64(b.delay) * (1 - jitter + 2*jitter*r))
}

func (b *backoff) reset() { b.delay = 0 }
