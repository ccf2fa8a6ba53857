package consulregistry

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/internal/retry"
)

// interval is the least time from one query to the next: a busy service must not keep Consul busy
// too.
const interval = 100 * time.Millisecond

// watch is one call of Watch.
type watch struct {
	*Registry
	board      *board
	membership membership
	index      index
	backoff    retry.Backoff
	asking     condition.Condition
}

func (w *watch) run(ctx context.Context) {
	for ctx.Err() == nil {
		asked, q := time.Now(), w.question()
		got, err := w.client.ask(ctx, q)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			w.failed(err)
			w.backoff.Sleep(ctx)
		default:
			w.answered(got, q.consistent)
			retry.Sleep(ctx, w.interval()-time.Since(asked))
		}
	}
}

// question blocks until there is news, unless the leader's word is wanted.
func (w *watch) question() question {
	if !w.membership.known || w.membership.pending() {
		return question{service: w.service, consistent: true}
	}
	return question{service: w.service, index: w.index}
}

func (w *watch) interval() time.Duration {
	if w.membership.pending() {
		return confirmAfter
	}
	return interval
}

// failed begins afresh: behind the same address there may be another Consul, with
// lower indexes.
func (w *watch) failed(err error) {
	w.asking.Note(err)
	w.index = 0
	w.membership.suspectAll()
}

func (w *watch) answered(got answer, consistent bool) {
	w.asking.Note(nil)
	w.backoff.Reset()
	w.heard.Store(time.Now().UnixNano())
	if w.index.follow(got.index) {
		w.membership.suspectAll()
	}
	doubted := w.membership.pending()
	w.membership.update(got.list, consistent, time.Now())
	switch {
	case w.membership.pending() && !doubted:
		w.log.Warn("Consul lost many instances at once; they stay in use until this is confirmed", "it_has", len(got.list), "listed", len(w.membership.list))
	case doubted && !w.membership.pending():
		w.log.Info("the list from Consul is trusted again", "listed", len(w.membership.list))
	}
	w.board.put(w.membership.list)
}
