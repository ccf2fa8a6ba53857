package stream

import (
	"context"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Item is a record on its way to its result, or to its dead letter.
type Item struct {
	Record      *serving.StreamRecord
	Position    string     // of the record
	Message     Message    // nil: it cannot be read
	Rejection   *Rejection // why it gets no results; nil: its message has them
	Repeated    bool       // the same message, by its checksum, got a result before
	Redelivered bool       // this record did: the broker forgot that it was committed

	id       string
	format   Format
	known    known
	rejected [1]Result // with Rejection

	came   time.Time
	cancel context.CancelFunc // ends its handling
	before *Item              // whose result leaves before; nil: none is in flight
	stage  stage
	leaves uint64 // the last look that found its result ready
}

// newItem makes an item of a record; its context ends with ctx, or when the record is lost.
func newItem(ctx context.Context, r *serving.StreamRecord, now time.Time) (*Item, context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	return &Item{Record: r, Position: r.Position(), came: now, cancel: cancel}, ctx
}

// known is what is known of a message by its id.
type known struct{ position, checksum string }

// identify holds the id of the message to one that came before. A broker that lost what was
// committed, and sends a record again, lost its result too: it gets one like every other.
func (it *Item) identify(before known, k Kind) *Rejection {
	again := before.checksum != "" && before.checksum == it.known.checksum
	here := before.position == it.Position
	if !again && !here {
		return Rejected(DuplicateID, "an id twice: another %s had the uuid %.100q, at %s", k.Record, it.id, before.position)
	}
	// A message with another checksum is new: its stream was deleted and made anew.
	it.Repeated, it.Redelivered = again, here && (again || before.checksum == "")
	return nil
}

// Results are what the item comes to: those of its message, or why it gets none.
func (it *Item) Results() []Result {
	if it.Rejection == nil {
		return it.Message.Results()
	}
	it.rejected[0].Rejection = it.Rejection
	return it.rejected[:]
}

// dead says whether the item comes to nothing but dead letters.
func (it *Item) dead() bool {
	return !slices.ContainsFunc(it.Results(), func(r Result) bool { return r.Rejection == nil })
}

// shorten makes the largest message of the item shorter, if that can be.
func (it *Item) shorten(k Kind, why error) bool {
	results := it.Results()
	largest := 0
	for i := range results {
		if results[i].size(it) > results[largest].size(it) {
			largest = i
		}
	}
	return results[largest].shorten(k, why)
}

// size is about how large the message of a result is.
func (r *Result) size(it *Item) int {
	switch {
	case r.Rejection != nil:
		return min(len(it.Record.Value), kept[r.length].value)
	case r.Drop:
		return 0
	}
	return len(r.Value)
}
