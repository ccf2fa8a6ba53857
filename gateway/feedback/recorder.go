package feedback

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
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
	// maxPending and maxPendingBytes bound the records that wait, and the inputs in
	// them. Those beyond are not kept.
	maxPending      = 8192
	maxPendingBytes = 64 << 20
	// perFlush is how many records of apps whose policy does not learn are kept in
	// between: a thousand a second, and fewer of large inputs, of which each perRecord bytes
	// count as one more, since all are hashed. Feedback on their answers changes no answer.
	perFlush  = 20
	perRecord = 4 << 10
	// storeWithin bounds one storing.
	storeWithin = 2 * time.Second
)

// Recorder keeps the records of a gateway's answers, soon and in the background.
type Recorder struct {
	store   Store
	kept    obs.Counter
	lost    obs.Counter
	quota   atomic.Int64       // of records that are not for learning, until the next flush
	flushes chan chan struct{} // closed when what was kept before is stored, or lost
	ended   chan struct{}      // closed when Run has returned
	storing *condition.Condition

	mu      sync.Mutex // guards the following
	pending []*serving.Record
	bytes   int
}

// NewRecorder makes a recorder; Run stores what it is given.
func NewRecorder(store Store, log *slog.Logger, r *obs.Registry) *Recorder {
	records := r.Counters("topsail_feedback_records_total", "Records of answers, for feedback to come: kept, or lost because they were too many or too large, or the store was unavailable.", "result")
	return &Recorder{
		store: store, kept: records.WithLabelValues("kept"), lost: records.WithLabelValues("lost"),
		flushes: make(chan chan struct{}), ended: make(chan struct{}),
		storing: &condition.Condition{
			Log: log, Begins: "cannot store the records of answers: feedback on them is joined by predicting again", Ends: "records of answers are stored again",
		},
	}
}

// Wants says whether there is room for the record of one more answer, to an input of so many bytes. Those that a
// policy learns from come first.
func (r *Recorder) Wants(learns bool, input int) bool {
	if learns {
		return true
	}
	takes := 1 + int64(input/perRecord)
	return r.quota.Load() > 0 && r.quota.Add(-takes)+takes > 0
}

// Keep takes a record, which is the recorder's from then on.
func (r *Recorder) Keep(record *serving.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) >= maxPending || r.bytes+len(record.Input) > maxPendingBytes {
		r.lost.Inc()
		return
	}
	r.pending = append(r.pending, record)
	r.bytes += len(record.Input)
}

// Run stores records until ctx ends, and then what is left. Run it once.
func (r *Recorder) Run(ctx context.Context) error {
	defer close(r.ended)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	r.quota.Store(perFlush)
	storing := context.WithoutCancel(ctx) // what was begun is finished
	for {
		select {
		case <-tick.C:
			r.quota.Add(min(perFlush, perFlush-r.quota.Load())) // a large one counts for the flushes to come, too
			r.flush(storing)
		case done := <-r.flushes:
			r.flush(storing)
			close(done)
		case <-ctx.Done():
			r.flush(storing)
			return context.Cause(ctx)
		}
	}
}

// Flush returns when what was kept so far is stored or lost, Run has returned, or ctx
// ends.
func (r *Recorder) Flush(ctx context.Context) {
	done := make(chan struct{})
	select {
	case r.flushes <- done:
	case <-r.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// flush stores what waits.
func (r *Recorder) flush(ctx context.Context) {
	list := r.finish(r.take())
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	err := r.store.PutRecords(ctx, list)
	if err != nil {
		r.lost.Add(float64(len(list)))
	} else {
		r.kept.Add(float64(len(list)))
	}
	r.storing.Note(err)
}

// finish gives records their hashes, and leaves out what is too large.
func (r *Recorder) finish(list []*serving.Record) (finished []*serving.Record) {
	for _, record := range list {
		record.InputHash = serving.HashInput(serving.Input{Type: record.InputType, Data: record.Input})
		if len(record.Input) > serving.MaxRecordedInput {
			record.Input = nil
		}
		bounded, err := record.Bounded()
		if err != nil {
			r.lost.Inc()
			continue
		}
		finished = append(finished, bounded)
	}
	return finished
}

func (r *Recorder) take() []*serving.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.pending
	r.pending, r.bytes = nil, 0
	return list
}
