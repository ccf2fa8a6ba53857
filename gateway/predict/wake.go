package predict

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"topsail/serving"
)

const (
	// wakeEvery is how often a version without a replica is woken while it is asked.
	wakeEvery = time.Second
	// wakeWithin bounds one attempt.
	wakeWithin = 2 * time.Second
	// maxWakes bounds the versions that wait for their first wake.
	maxWakes = 256
)

// Waker has replicas started.
type Waker interface {
	// Wake says that a version without a ready replica is asked. It may be said
	// again and again, by several gateways.
	Wake(ctx context.Context, id serving.ModelID) error
}

// Run wakes the versions that are asked and have no replica, until ctx ends. Without
// it their queries only wait for replicas that come by themselves.
func (p *Predictor) Run(ctx context.Context, waker Waker, log *slog.Logger) error {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case b := <-p.wakes:
			all.Go(func() { p.keepAwake(ctx, b, waker, log) })
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// keepAwake wakes a version until it has a replica or is not asked any more.
func (p *Predictor) keepAwake(ctx context.Context, b *coldQueue, waker Waker, log *slog.Logger) {
	for b.asleep() {
		p.metrics.wakes.Inc()
		attempt, cancel := context.WithTimeout(ctx, wakeWithin)
		err := b.rouse(attempt, waker)
		cancel()
		if b.woken(err) && ctx.Err() == nil {
			log.Warn("cannot wake a model version that is asked and has no replica; retrying", "model", b.ModelID.String(), "err", err)
		}
		select {
		case <-time.After(b.rousedEvery()):
		case <-ctx.Done():
			return
		}
	}
}

// wake has the version woken if it has no replica, now or when the last wake is long
// enough ago. b.mu is held. When there is no end of versions to wake, this one waits
// for its next query.
func (b *coldQueue) wake() {
	if b.group().Len() > 0 {
		return
	}
	b.asked = true
	b.load(time.Now())
	if b.waking {
		return
	}
	select {
	case b.wakes <- b:
		b.waking = true
	default:
	}
}

// passedOver is called when a query that was for the version went elsewhere, because
// the version has no replica.
func (b *coldQueue) passedOver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wake()
}

// asleep says whether the version is to be woken (again).
func (b *coldQueue) asleep() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waking = b.group().Len() == 0 && (b.asked || len(b.queued.calls) > 0)
	b.asked = false
	return b.waking
}

// woken takes in how the wake went, and says whether that is a failure after a
// success, which is worth telling.
func (b *coldQueue) woken(err error) (tell bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	tell = err != nil && !b.failed
	b.failed = err != nil
	return tell
}
