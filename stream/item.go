package stream

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Item is a record on its way to its result, or to its dead letter.
type Item struct {
	Record      *serving.StreamRecord
	Position    string     // of the record
	Message     Message    // nil: it cannot be read
	Outcome     string     // what it came to, a word
	Rejection   *Rejection // nil: it gets a result
	Repeated    bool       // the same message, by its checksum, got a result before
	Redelivered bool       // this record did: the broker forgot that it was committed

	id     string
	format Format
	known  known
	length int // of its dead letter

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

// message is the item's result, or its dead letter, and whether there is one.
func (it *Item) message(j *Job) (m serving.StreamMessage, is bool) {
	if it.Rejection != nil {
		return j.deadLetters.message(it.Record, it.Rejection, it.length), true
	}
	return it.result(j)
}

// shorten makes a result that the broker finds too large a dead letter, and one of these
// shorter, if that can be.
func (it *Item) shorten(k Kind, why error) bool {
	if it.Rejection == nil {
		it.Rejection = Rejected(k.TooLarge, "%s: %v", k.Said, why)
		return true
	}
	if it.length == len(kept)-1 {
		return false
	}
	it.length++
	return true
}
