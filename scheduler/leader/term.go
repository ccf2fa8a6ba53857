package leader

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrLost means that the term is over, or may be. Its work is another leader's now.
var ErrLost = errors.New("leadership is lost, or may be; another process takes over")

// Term is one time of leadership.
type Term struct {
	fence uint64
	life  time.Duration // of the lease after a renewal, less the margin

	mu      sync.Mutex // guards the following
	renewed time.Time  // when the last successful renewal was begun
	over    bool
	expiry  *time.Timer // ends the term; also while a renewal hangs
	cancel  context.CancelCauseFunc
}

// Fence is greater than that of every term before.
func (t *Term) Fence() uint64 { return t.fence }

// Valid says whether no other can lead now. Ask before each side effect.
func (t *Term) Valid() bool { return t.left() > 0 }

// Check is ErrLost unless the term is valid.
func (t *Term) Check() error {
	if !t.Valid() {
		return ErrLost
	}
	return nil
}

// left is how long the term stays valid without a renewal.
func (t *Term) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return 0
	}
	return remaining(t.life, t.renewed, time.Now())
}

// remaining is what is left of a life. The monotonic clock stands still while the
// machine sleeps, and the wall clock may be set: the one that went further counts.
func remaining(life time.Duration, since, now time.Time) time.Duration {
	return life - max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// context is that of the term's work: it ends with the term.
func (t *Term) context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	left := t.left()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel, t.expiry = cancel, time.AfterFunc(left, func() { t.end(ErrLost) })
	return ctx
}

// renew extends a term that is not over by a renewal that was begun at a time.
func (t *Term) renew(begun time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = begun
	if t.expiry != nil && !t.over {
		t.expiry.Reset(remaining(t.life, begun, time.Now()))
	}
}

// end makes the term invalid for good; why is the cause of its context's end.
func (t *Term) end(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.expiry != nil {
		t.expiry.Stop()
		t.cancel(why)
	}
}
