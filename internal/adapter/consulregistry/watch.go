package consulregistry

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
)

// pace is the least time from one query to the next: a busy service must not keep
// Consul busy too.
const pace = 100 * time.Millisecond

// watch is one call of Watch.
type watch struct {
	*Registry
	board      *board
	membership membership
	index      index
	backoff    retry.Backoff
	away       bool // the last query failed, which is logged
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
			retry.Sleep(ctx, w.pace()-time.Since(asked))
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

func (w *watch) pace() time.Duration {
	if w.membership.pending() {
		return confirmAfter
	}
	return pace
}

// failed begins afresh: behind the same address there may be another Consul, with
// lower indexes.
func (w *watch) failed(err error) {
	if !w.away {
		w.log.Warn("consul gives no answer; the last list stays good", "error", err)
	}
	w.away, w.index = true, 0
	w.membership.suspectAll()
}

func (w *watch) answered(got answer, consistent bool) {
	if w.away {
		w.log.Info("consul answers again")
	}
	w.away = false
	w.backoff.Reset()
	w.heard.Store(time.Now().UnixNano())
	if w.index.follow(got.index) {
		w.membership.suspectAll()
	}
	doubted := w.membership.pending()
	w.membership.update(got.list, consistent, time.Now())
	switch {
	case w.membership.pending() && !doubted:
		w.log.Warn("consul has lost many instances at once; they stay until it is sure", "it_has", len(got.list), "listed", len(w.membership.list))
	case doubted && !w.membership.pending():
		w.log.Info("the list of consul is believed again", "listed", len(w.membership.list))
	}
	w.board.put(w.membership.list)
}
