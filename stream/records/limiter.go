package records

import (
	"context"
	"sync"
)

// limiter bounds the queries of one app in flight, so that the replicas always have the next
// one and no query waits for long. It begins with one for each ready replica and doubles
// until the replicas show that they are busy. From then on a small limit grows by one for each
// round of answers (additive increase), and a large one by a share, so that it returns in a few
// rounds, too (Kelly, "Scalable TCP", 2003); both decrease multiplicatively, once for each round.
type limiter struct {
	most  float64
	freed chan struct{} // has a token when there may be room

	mu       sync.Mutex
	limit    float64 // at least one for each replica
	replicas int     // ready ones, as last seen
	inFlight int
	asked    uint64 // queries so far
	decrease uint64 // asked at the last decrease; 0: there was none since replicas came
}

const (
	// limitDecrease is by what the limit is multiplied when the replicas are busy.
	limitDecrease = 0.8
	// limitIncrease is by how much an answer raises a limit above 32.
	limitIncrease = 1. / 32
)

func newLimiter(most int) *limiter {
	return &limiter{most: float64(most), limit: 1, freed: make(chan struct{}, 1)}
}

// acquire waits for a slot, which the caller releases.
func (l *limiter) acquire(ctx context.Context) error {
	for !l.tryAcquire() {
		select {
		case <-l.freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (l *limiter) tryAcquire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if float64(l.inFlight)+1 > l.limit {
		return false
	}
	l.inFlight++
	l.signal() // there may be room for another one
	return true
}

func (l *limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	l.signal()
}

// ask numbers a query that is about to be asked in a slot, of so many ready replicas.
func (l *limiter) ask(replicas int) (number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replicas == 0 && replicas > 0 {
		l.limit, l.decrease = 1, 0 // what was learned is of other replicas
	}
	if replicas > l.replicas {
		defer l.signal()
	}
	l.replicas = replicas
	l.limit = max(l.limit, l.least())
	l.asked++
	return l.asked
}

// answered takes in whether the replicas were busy when a query ended. Queries asked before
// the last decrease tell nothing of what it did.
func (l *limiter) answered(number uint64, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch used := float64(l.inFlight) > l.limit/2; { // an unused limit shows nothing
	case busy && number > l.decrease:
		l.limit = max(l.limit*limitDecrease, l.least())
		l.decrease = l.asked
	case busy || !used:
	case l.decrease == 0:
		l.limit = min(l.limit+1, l.most)
	default:
		l.limit = min(l.limit+max(1/l.limit, limitIncrease), l.most)
	}
	l.signal()
}

// least is where the limit begins, and never below.
func (l *limiter) least() float64 { return min(max(float64(l.replicas), 1), l.most) }

// signal lets one look for room, who lets the next.
func (l *limiter) signal() {
	if float64(l.inFlight)+1 > l.limit {
		return
	}
	select {
	case l.freed <- struct{}{}:
	default:
	}
}
