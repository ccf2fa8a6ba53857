package loop

import (
	"context"
	"time"
)

// Pause is how long to wait before something is tried again.
type Pause struct{ last time.Duration }

const (
	pauseFirst = 50 * time.Millisecond
	pauseMost  = 5 * time.Second
)

// Next is how long to wait now: twice as long as the last time.
func (p *Pause) Next() time.Duration {
	p.last = min(max(2*p.last, pauseFirst), pauseMost)
	return p.last
}

// Wait waits so long, or until ctx ends.
func (p *Pause) Wait(ctx context.Context) {
	select {
	case <-time.After(p.Next()):
	case <-ctx.Done():
	}
}

// after is ctx for a time longer, or for as long as stuck does not say that it is of no use; nil
// never does.
func after(ctx context.Context, d time.Duration, stuck func() bool) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for end := time.After(d); ; {
			select {
			case <-tick.C:
				if stuck != nil && stuck() {
					return
				}
			case <-end:
				return
			case <-later.Done():
				return
			}
		}
	})
	return later, func() { stop(); cancel() }
}

// lookAgain is how often it is seen whether what is in flight gets on.
const pollEvery = 100 * time.Millisecond
