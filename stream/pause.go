package stream

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

// Wait waits twice as long as the last time, or until ctx ends.
func (p *Pause) Wait(ctx context.Context) {
	p.last = min(max(2*p.last, pauseFirst), pauseMost)
	select {
	case <-time.After(p.last):
	case <-ctx.Done():
	}
}
