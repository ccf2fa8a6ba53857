package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/serving"
)

const (
	journalRoom   = 1024 // decisions that wait for a slow journal
	journalWithin = 2 * time.Second
)

// journal hands decisions to its recorders, each independently. A decision that a recorder does
// not take in time is lost to it; acting matters more.
type journal struct {
	books   []*book
	metrics *metrics
}

// book is one keeper, with what waits for it.
type book struct {
	keeper   Journal
	abdicate context.CancelCauseFunc // ends the term
	queue    chan serving.Decision
	writing  condition.Condition
}

func newJournal(keepers []Journal, m *metrics, abdicate context.CancelCauseFunc, log *slog.Logger) *journal {
	j := &journal{metrics: m}
	for _, k := range keepers {
		j.books = append(j.books, &book{
			keeper: k, abdicate: abdicate, queue: make(chan serving.Decision, journalRoom),
			writing: condition.Condition{Log: log, Begins: "decisions cannot be recorded"},
		})
	}
	return j
}

// add never waits. It must not be called after close.
func (j *journal) add(d serving.Decision) {
	for _, b := range j.books {
		select {
		case b.queue <- d:
		default:
			j.metrics.unrecorded.Inc()
		}
	}
}

// close says that nothing is to come.
func (j *journal) close() {
	for _, b := range j.books {
		close(b.queue)
	}
}

// run hands over until close and, once ctx has ended, for a short while.
func (j *journal) run(ctx context.Context) {
	ctx, cancel := lasting(ctx, journalWithin)
	defer cancel()
	var wg sync.WaitGroup
	for _, b := range j.books {
		wg.Go(func() {
			for d := range b.queue {
				if !b.write(ctx, d) {
					j.metrics.unrecorded.Inc()
				}
			}
		})
	}
	wg.Wait()
}

func (b *book) write(ctx context.Context, d serving.Decision) bool {
	ctx, cancel := context.WithTimeout(ctx, journalWithin)
	defer cancel()
	err := b.keeper.AddDecision(ctx, d)
	if errors.Is(err, serving.ErrFenced) {
		b.abdicate(err)
	}
	b.writing.Note(err)
	return err == nil
}

// lasting is a context that ends a while after ctx does.
func lasting(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-longer.Done():
		case <-time.After(while):
			cancel()
		}
	})
	return longer, func() { stop(); cancel() }
}
