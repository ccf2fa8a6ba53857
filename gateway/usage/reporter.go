package usage

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Store keeps usage.
type Store interface {
	// AddUsage takes a report, once however often it comes: where its number is not above
	// all that its writer has sent, nothing changes.
	AddUsage(ctx context.Context, report serving.UsageReport) error
}

const (
	every      = time.Second     // between reports
	sentWithin = 5 * time.Second // one report
	lastWithin = 2 * time.Second // the last ones, of a process that ends
)

// Reporter reports what was counted to a store.
type Reporter struct {
	take  func() (revision uint64, counted []serving.Usage)
	store Store
	log   *slog.Logger

	writer  string
	number  uint64    // of the last report that was made
	pending []pending // reports that the store has not confirmed, the oldest first
	failing bool
}

// pending is a report that the store may have or not.
type pending struct {
	serving.UsageReport
	sent time.Time // for the first time, by the wall clock; zero: it was not
}

// NewReporter reports what take takes, which begins anew each time.
func NewReporter(take func() (revision uint64, counted []serving.Usage), store Store, log *slog.Logger) *Reporter {
	return &Reporter{take: take, store: store, log: log, writer: rand.Text()}
}

// Run reports until ctx ends, and then the rest. Run it once.
func (r *Reporter) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.report(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWithin)
			defer cancel()
			r.report(last)
			return context.Cause(ctx)
		}
	}
}

// report sends what waits, and then what was counted since. While the store is unavailable,
// new counts add up in the counters, which need no more room for it.
func (r *Reporter) report(ctx context.Context) {
	if !r.drain(ctx) {
		return
	}
	revision, counted := r.take()
	for len(counted) > 0 {
		n := min(len(counted), serving.MaxUsageReport)
		r.number++
		r.pending = append(r.pending, pending{UsageReport: serving.UsageReport{Writer: r.writer, Number: r.number, Revision: revision, Counted: counted[:n]}})
		counted = counted[n:]
	}
	r.drain(ctx)
}

// drain sends the reports that wait, and says whether the store has them all.
func (r *Reporter) drain(ctx context.Context) bool {
	for len(r.pending) > 0 {
		err := r.send(ctx, &r.pending[0])
		if err != nil {
			if !r.failing && ctx.Err() == nil {
				r.log.Warn("cannot store usage; it adds up here meanwhile", "err", err)
			}
			r.failing = true
			return false
		}
		r.pending = r.pending[1:]
	}
	r.pending = nil
	if r.failing {
		r.log.Info("usage can be stored again")
	}
	r.failing = false
	return true
}

// send sends a report. It gives up one of which the store may have forgotten whether it
// has it.
func (r *Reporter) send(ctx context.Context, p *pending) error {
	now := time.Now().Round(0) // while a machine sleeps, its wall clock does not
	switch {
	case p.sent.IsZero():
		p.sent = now
	case now.Sub(p.sent) > serving.UsageDoubt:
		r.log.Warn("a report of usage is given up, which may be stored or not", "counts", len(p.Counted), "since", p.sent)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sentWithin)
	defer cancel()
	return r.store.AddUsage(ctx, p.UsageReport)
}
