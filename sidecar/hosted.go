package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/container"
)

// hostedModel is a version of another model in a host. The host's lock guards it.
type hostedModel struct {
	load     rpc.Load  // as it was last asked for
	asked    time.Time // when
	queued   bool      // it waits to be loaded
	loading  bool      // it is its turn
	resident *resident // nil: the container does not hold it
}

// resident is a version that the container holds, or is loading.
type resident struct {
	pool   *pool
	load   rpc.Load              // as it was asked for
	home   *members              // the container
	id     uint32                // that the container announced; guarded by the host
	loaded bool                  // guarded by the host
	said   chan rpc.Announcement // of capacity 1: what the container says of loading and unloading it
	tally  *demand.Tally         // of the version itself; its demand counts for the host

	since   atomic.Int64 // when it got its room, in Unix nanoseconds; 0: gateways must not ask it yet
	used    atomic.Int64 // when it was last asked, in Unix nanoseconds
	leaving atomic.Bool  // it is held no longer, or not for long
}

// same says whether two ask for one definition.
func same(a, b rpc.Load) bool { return a.Definition() == b.Definition() && a.Bundle == b.Bundle }

// say passes on what the container has announced.
func (r *resident) say(a rpc.Announcement) {
	select {
	case <-r.said: // what was not waited for
	default:
	}
	select {
	case r.said <- a:
	default:
	}
}

// settle admits requests of gateways to the version: it is loaded, and there is room for it.
func (r *resident) settle(now time.Time) {
	r.used.Store(now.UnixNano())
	r.since.Store(now.UnixNano())
	r.pool.changed(r.pool)
}

// free says whether the version may be unloaded.
func (r *resident) free(now time.Time) bool {
	since := r.since.Load()
	spared := r.used.Load() == since && now.UnixNano()-since < int64(sparedFor)
	return since != 0 && !spared && r.pool.answered()
}

// idle waits until the version has answered what it was asked, for so long at the most.
func (r *resident) idle(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !r.pool.answered() && ctx.Err() == nil {
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
	}
}

// await asks the container for something, and waits for what it announces, for so long at
// the most.
func (r *resident) await(ctx context.Context, within time.Duration, ask func() error) (rpc.Announcement, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case <-r.said:
	default:
	}
	if err := ask(); err != nil {
		return rpc.Announcement{}, err
	}
	for {
		select {
		case a := <-r.said:
			if a.State != rpc.StateLoading {
				return a, nil
			}
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return rpc.Announcement{}, errNoAnswer
			}
			return rpc.Announcement{}, ctx.Err()
		}
	}
}

// Batch, Waited and Dropped implement batch.Observer. What the version itself has answered
// is the proof that it can be loaded.
func (r *resident) Batch(n int, took time.Duration) {
	r.pool.metrics.Batch(n, took)
	r.tally.Batch(n, took)
}

func (r *resident) Waited(d time.Duration)    { r.pool.metrics.Waited(d) }
func (r *resident) Dropped(status rpc.Status) { r.pool.metrics.Dropped(status) }

// errStopping is why nothing more is loaded.
var errStopping = errors.New("the sidecar is stopping")

// errNoAnswer ends a container that hangs.
var errNoAnswer = fmt.Errorf("the container did not load or unload a version in time: %w", container.ErrStalled)

// askedLately is for how long a version that was asked counts as in use.
const askedLately = 2 * time.Second

// profile is what the version takes for a batch, while it is asked; else zero.
func (r *resident) profile() serving.LatencyLine {
	if time.Since(time.Unix(0, r.used.Load())) > askedLately {
		return serving.LatencyLine{}
	}
	return r.pool.profile()
}

// hostedVersion is the version that a gateway describes.
func hostedVersion(v rpc.Load, host string) *serving.Version {
	own := &serving.Version{
		ModelID: v.Model, Generation: v.Generation, InputType: v.InputType, InputLength: v.InputLength, HostedBy: host,
		Container: serving.Container{Bundle: v.Bundle},
	}
	own.Signature, _ = serving.ParseSignature(v.Signature) // the host refuses what is none
	if len(v.Batch) > 0 {
		if err := json.Unmarshal(v.Batch, &own.Batch); err != nil || own.Check() != nil {
			own.Batch = serving.BatchSpec{} // of a newer gateway: the default is good enough
		}
	}
	return own
}
