package container

import (
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

// Begin implements batch.Runner, for one query. A query that is given up is cancelled, which frees the model for
// others; the container counts as stalled if it does not end it.
func (r Concurrent) Begin(items []*queue.Item, ended func(error)) (giveUp func()) {
	x := r.exchange(items, ended)
	x.send()
	return x.cancel
}

func (x *exchange) cancel() {
	s := x.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[x.batch] != x || x.late != nil {
		return
	}
	// When it cannot be sent the connection has ended or is about to.
	_ = s.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: x.batch, Index: rpc.CancelAll}))
	x.late = time.AfterFunc(endWithin, func() { x.end(errNotCancelled) })
}
