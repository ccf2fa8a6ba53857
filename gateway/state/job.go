package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// job is one change of a state that waits to be stored.
type job struct {
	ctx    context.Context // of the caller that waits for it
	app    *App
	change change

	done    chan struct{} // closed when what follows is final
	changed bool          // the state learned; else it knew already
	err     error
}

// change makes the next state of one that it leaves as it is, or nil when there is
// nothing to change. It is called again when the state changed meanwhile.
type change func(a *App, s *selection.State) (*selection.State, error)

// maxBatch bounds the jobs that are stored together. It is no more than a state
// remembers queries, so that feedback which comes twice in a batch is known.
const maxBatch = 64

var (
	errBusy    = errors.New("too much feedback is waiting to be stored: send it again later")
	errStopped = errors.New("the gateway is stopping: send it again")
)

// submit queues a change of a state.
func (s *States) submit(ctx context.Context, a *App, key serving.StateKey, c change) *job {
	j := &job{ctx: ctx, app: a, change: c, done: make(chan struct{})}
	if s.waiting.Add(1) > maxWaiting {
		s.end(j, errBusy)
		return j
	}
	if e := s.entry(key); e.add(j) {
		s.commits <- e
	}
	return j
}

// await waits until a job is done. Its results may be read when the error is nil.
func (s *States) await(ctx context.Context, j *job) error {
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return fmt.Errorf("it is unknown whether the feedback was stored: send it again, which is safe: %w", context.Cause(ctx))
	case <-s.stopped:
		return errStopped
	}
}

func (s *States) end(j *job, err error) {
	if j.err == nil {
		j.err = err
	}
	s.waiting.Add(-1)
	close(j.done)
}
