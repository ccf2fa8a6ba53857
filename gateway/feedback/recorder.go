package feedback

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"topsail/internal/obs"
	"topsail/serving"
)

// Store keeps records of answers, for all gateways.
type Store interface {
	PutRecords(ctx context.Context, list []*serving.Record) error
	RecordOf(ctx context.Context, app string, queryID int64) (*serving.Record, error)
	NewestRecord(ctx context.Context, app, user, context string, input serving.InputHash) (*serving.Record, error)
	MarkLearned(ctx context.Context, app string, queryID int64) error
}

const (
	// flushEvery is how long a record waits for others, to be stored together.
	flushEvery = 20 * time.Millisecond
	// maxPending bounds the records that wait. Those beyond are not kept.
	maxPending = 8192
	// perFlush is how many records of apps whose policy does not learn are kept in
	// between: a thousand a second. Feedback on their answers changes no answer.
	perFlush = 20
	// storeWithin bounds one storing.
	storeWithin = 2 * time.Second
)

// Recorder keeps the records of a gateway's answers, soon and in the background.
type Recorder struct {
	store Store
	log   *slog.Logger
	kept  obs.Counter
	lost  obs.Counter
	quota atomic.Int64 // of records that are not for learning, until the next flush

	mu      sync.Mutex // guards the following
	pending []*serving.Record

	storing sync.Mutex // held while records are stored; guards the following
	failing bool
}

// NewRecorder makes a recorder; Run stores what it is given.
func NewRecorder(store Store, log *slog.Logger, r *obs.Registry) *Recorder {
	records := r.Counters("topsail_feedback_records_total", "Records of answers, for feedback to come: kept, or lost because there were too many or the store was away.", "result")
	return &Recorder{store: store, log: log, kept: records.WithLabelValues("kept"), lost: records.WithLabelValues("lost")}
}

// Wants says whether there is room for the record of one more answer. Those that a
// policy learns from come first.
func (r *Recorder) Wants(learns bool) bool { return learns || r.quota.Add(-1) >= 0 }

// Keep takes a record, which is the recorder's from then on.
func (r *Recorder) Keep(record *serving.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) >= maxPending {
		r.lost.Inc()
		return
	}
	r.pending = append(r.pending, record)
}

// Run stores records until ctx ends, and then what is left.
func (r *Recorder) Run(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	r.quota.Store(perFlush)
	for {
		select {
		case <-tick.C:
			r.quota.Store(perFlush)
			r.Flush(ctx)
		case <-ctx.Done():
			r.Flush(context.WithoutCancel(ctx))
			return context.Cause(ctx)
		}
	}
}

// Flush stores what waits, and returns when that is done or has failed.
func (r *Recorder) Flush(ctx context.Context) {
	r.storing.Lock()
	defer r.storing.Unlock()
	r.mu.Lock()
	list := r.pending
	r.pending = nil
	r.mu.Unlock()
	if len(list) == 0 {
		return
	}
	for _, record := range list {
		record.InputHash = serving.HashInput(serving.Input{Type: record.InputType, Data: record.Input})
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	err := r.store.PutRecords(ctx, list)
	if err != nil {
		r.lost.Add(float64(len(list)))
	} else {
		r.kept.Add(float64(len(list)))
	}
	if failing := err != nil; failing != r.failing {
		r.failing = failing
		if failing {
			r.log.Warn("cannot store the records of answers: feedback on them is joined by predicting again", "err", err)
		} else {
			r.log.Info("records of answers are stored again")
		}
	}
}
