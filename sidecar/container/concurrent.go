package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// endWithin is how long a concurrent container may take to end a query that was cancelled.
const endWithin = 10 * time.Second

var errNotCancelled = fmt.Errorf("%w: it did not end a query within %v of its cancellation", ErrStalled, endWithin)

// Concurrent runs queries of one announced model of a session side by side.
type Concurrent struct{ *Runner }

// PredictBatch implements batch.Runner, for one query. Queries do not wait for each other. One whose
// context ends is cancelled, which frees the model for others; the container is lost if it does not
// end it.
func (r Concurrent) PredictBatch(ctx context.Context, items []*queue.Item) error {
	s := r.session
	x, err := s.ask(r.model, items)
	if errors.Is(err, rpc.ErrTooLarge) {
		items[0].Refuse(rpc.StatusBadInput, "the input is larger than the container accepts")
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case err := <-x.done:
		return err
	case <-ctx.Done():
	}
	// When it cannot be sent the connection has ended or is about to.
	_ = s.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: x.batch, Index: rpc.CancelAll}))
	late := time.NewTimer(endWithin)
	defer late.Stop()
	select {
	case err := <-x.done:
		return err
	case <-late.C:
		s.end(x, errNotCancelled)
		return <-x.done
	}
}
