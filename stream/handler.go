package stream

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Handler is what a job does about records.
type Handler interface {
	// Parse reads the message of a record, which is written in a format.
	Parse(r *serving.StreamRecord, format Format) (Message, error)
	// Handle begins to bring an item to its results, or to reject it, and does not
	// wait for that. Items come one by one, in the order of their records. When it is at
	// its end it calls done, once; with an error where the record is to be redelivered: when ctx ends, because the
	// record is lost or the job has ended, or when the job is to end.
	Handle(ctx context.Context, it *Item, done func(error))
	// Waited is for how long no record got its result while one waited for what it needs; 0: none waits.
	Waited() time.Duration
	// Committed is told of items that are done, after each commit.
	Committed(items []*Item)
}

// Message is what a record says, as its handler reads it, and what becomes of that.
type Message interface {
	// ID pairs the result with the record; empty: there is none. A message that is
	// redelivered with the same checksum is no mistake; without a checksum, every message at
	// another position is one.
	ID() (id, checksum string)
	// Prepare completes the message, in the order of the records, before it is handled. Its error is a Rejection, or says that the records are to be redelivered.
	Prepare(ctx context.Context) error
	// Results are what the message comes to, when it has been handled: always the same memory, in which a result
	// that the broker finds too large becomes a dead letter.
	Results() []Result
}

// Kind is what all jobs of a handler have in common, as errors and metrics call it.
type Kind struct {
	Stream      string   // what a job serves: "stream"
	Record      string   // what comes: "record"
	Result      string   // what becomes of it: "result"
	DeadLetters string   // or what does: "records that get no result"
	Shrink      string   // what to do about a record that is too large, besides raising the bound
	TooLarge    Reason   // of a result that is larger than the broker takes
	Said        string   // what is said of such a result
	Reasons     []Reason // all that the handler rejects records for, and TooLarge
	Keep        []string // headers that begin as Topsail's own and mean something to the handler: dead letters keep them
	Metrics     string   // what the names of metrics begin with
	Gauge       Gauge    // one more metric
}

// Gauge is a metric of the jobs of one kind.
type Gauge struct {
	Name, Help string
	Value      func(j *Job, h Handler) float64
}
