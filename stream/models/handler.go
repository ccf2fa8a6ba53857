package models

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// handler has updates applied.
type handler struct {
	cfg     Config
	job     *stream.Job
	api     management
	metrics *jobMetrics

	mu       sync.Mutex
	came     []*entry      // that are in no round yet
	others   chan struct{} // has a token when some came
	applying bool
}

// entry is an update that is handled.
type entry struct {
	*stream.Item
	ctx  context.Context // ends when the update need not be applied
	done func(error)
	left grace
}

// Parse implements stream.Handler.
func (h *handler) Parse(r *serving.StreamRecord, format stream.Format) (stream.Message, error) {
	u, err := ParseUpdate(r.Value, format)
	if err != nil {
		return nil, err
	}
	return &record{StreamRecord: r, Update: u}, nil
}

// Reads implements stream.Reader.
func (h *handler) Reads() bool { return len(h.cfg.Descriptors) > 0 }

// Read implements stream.Reader, of a stream of model descriptors.
func (h *handler) Read(_ context.Context, r *serving.StreamRecord) (stream.Message, error) {
	u, err := parseDescriptor(r, h.cfg.Descriptors, h.cfg.Kinds)
	if err != nil {
		return nil, err
	}
	return &record{StreamRecord: r, Update: u}, nil
}

// record is one with its update, on the way to its acknowledgement.
type record struct {
	*serving.StreamRecord
	Update
	ack    Acknowledgement
	result [1]stream.Result // with it
	later  []string         // models that updates behind it have its app ask, and that may be there before it is applied
}

// of is the record of an item, which the handler made.
func of(it *stream.Item) *record { return it.Message.(*record) }

// ID implements stream.Message. The same message may come twice: to apply it again changes
// nothing.
func (r *record) ID() (id, checksum string) {
	sum := sha256.Sum256(r.Value)
	return r.UUID, string(sum[:])
}

// Prepare implements stream.Message. There is nothing to do.
func (r *record) Prepare(context.Context) error { return nil }

// Results implements stream.Message.
func (r *record) Results() []stream.Result { return r.result[:] }

// Handle implements stream.Handler.
func (h *handler) Handle(ctx context.Context, it *stream.Item, done func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.came = append(h.came, &entry{Item: it, ctx: ctx, done: done, left: grace{most: h.cfg.Patience}})
	signal(h.others)
	if !h.applying {
		h.applying = true
		go h.work()
	}
}

// signal leaves a token in a channel that has room for one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// work applies updates in rounds, until there are none. Updates may need each other, so one that misses an
// app or a model is put off until the others are done, and waited for only when that brings nothing.
func (h *handler) work() {
	var left []*entry
	for how := inOrder; ; {
		came := h.take(len(left) == 0)
		if left = append(left, came...); len(left) == 0 {
			return
		}
		if len(came) > 0 {
			how = inOrder
		}
		before := len(left)
		if left = h.round(left, how); h.ending() {
			how, left = inOrder, abandon(left)
			continue
		}
		if how++; len(left) < before {
			how = inOrder
		}
	}
}

// abandon has updates redelivered, in their order.
func abandon(updates []*entry) []*entry {
	for _, u := range updates {
		u.done(errEnding)
	}
	return nil
}

func (h *handler) ending() bool {
	select {
	case <-h.job.Ending():
		return true
	default:
		return false
	}
}

// take takes the updates that have come. Where there are none, the work ends if that is all.
func (h *handler) take(all bool) []*entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	came := h.came
	h.came = nil
	select {
	case <-h.others:
	default:
	}
	h.applying = len(came) > 0 || !all
	return came
}

// Waited implements stream.Handler. Updates that wait see by themselves when the job is to end.
func (h *handler) Waited() time.Duration { return 0 }

// apply applies one update. It fails with errMissing at once, or is patient until others come.
func (h *handler) apply(e *entry, others <-chan struct{}) (err error) {
	began, it, r := time.Now(), e.Item, of(e.Item)
	w, end := h.workOf(r, it.Repeated)
	defer end()
	r.ack, it.Rejection, err = h.finish(e.ctx, "apply an update of "+r.about(), w, &e.left, others)
	r.ack.UUID = r.UUID
	r.result[0] = stream.Result{Outcome: r.ack.Outcome, Value: r.ack.append(nil, r.Format)}
	if err == nil {
		h.metrics.apply.Observe(time.Since(began).Seconds())
	}
	return err
}

// Committed implements stream.Handler: it counts, and says what became of each.
func (h *handler) Committed(items []*stream.Item) {
	for _, it := range items {
		if why := it.Results()[0].Rejection; why != nil {
			h.job.Log.Warn("an update became a dead letter", "kind", why.Reason, "why", why.Text, "place", it.Position)
			continue
		}
		r := of(it)
		h.metrics.outcomes[r.ack.Outcome].Inc()
		h.job.Log.Info("an update is applied", "outcome", r.ack.Outcome, "about", r.about(), "version", r.ack.Version)
	}
}
