package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
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
	// Wake says that a version without a ready replica is asked. It may be said repeatedly, by
	// several gateways.
	Wake(ctx context.Context, id serving.ModelID) error
}

// Run wakes the versions that are asked and have no replica, until ctx ends. Without
// it their queries only wait for replicas that come by themselves.
func (d *Dispatcher) Run(ctx context.Context, waker Waker, log *slog.Logger) error {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case v := <-d.wakes:
			all.Go(func() { d.keepAwake(ctx, v, waker, log) })
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// keepAwake wakes a version until it has a replica or is not asked any more.
func (d *Dispatcher) keepAwake(ctx context.Context, v *Version, waker Waker, log *slog.Logger) {
	for v.asleep() {
		d.metrics.wakes.Inc()
		attempt, cancel := context.WithTimeout(ctx, wakeWithin)
		err := v.demandReplica(attempt, waker)
		cancel()
		if v.woken(err) && ctx.Err() == nil {
			log.Warn("cannot wake a model version that has requests and no replica; retrying", "model", v.ModelID.String(), "err", err)
		}
		if !retry.Sleep(ctx, v.demandEvery()) {
			return
		}
	}
}

// wake has the version woken if it has no replica, now or when the last wake is long
// enough ago. v.mu is held. When there is no end of versions to wake, this one waits
// for its next query.
func (v *Version) wake() {
	if v.Group().Len() > 0 {
		return
	}
	v.asked = true
	v.load(time.Now())
	if v.waking {
		return
	}
	select {
	case v.d.wakes <- v:
		v.waking = true
	default:
	}
}

// PassedOver is called when a query that was for the version went elsewhere, because
// the version has no replica, or when it is to be woken without a query.
func (v *Version) PassedOver() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wake()
}

// asleep says whether the version is to be woken (again).
func (v *Version) asleep() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waking = v.Group().Len() == 0 && (v.asked || v.queued.calls > 0)
	v.asked = false
	return v.waking
}

// woken takes in how the wake went, and says whether that is a failure after a
// success, which is worth telling.
func (v *Version) woken(err error) (tell bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	tell = err != nil && !v.failed
	v.failed = err != nil
	return tell
}
