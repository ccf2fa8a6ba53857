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

// after is a context that ends some time after ctx.
func after(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(d):
			cancel()
		case <-later.Done():
		}
	})
	return later, func() { stop(); cancel() }
}
