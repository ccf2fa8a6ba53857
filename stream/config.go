package stream

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Config is what every job is made of. Name, Consumer, Output and DeadLetter are required.
type Config struct {
	Name     string   // its own among the jobs of a process
	Consumer Consumer // which the job does not close
	Streams  []string // that the consumer reads, for Status
	Catalog  Catalog  // says when the stream is suspended; nil: it never is

	Output     string // the stream of results
	DeadLetter string // the stream of records that get none
	Format     Format // of records; results are written as their records are

	Order Order // in which results leave

	Batch       int           // most records in flight; 0: 256, or 16 of a model stream
	MaxRecord   int           // bytes of a record with its key and headers; 0: 1 MiB, or 16 MiB of a model stream
	Recent      int           // ids that are remembered, to find those that come twice; 0: 65536
	CommitEvery time.Duration // least time from one commit to the next; 0: 5 ms; below 0: none
	Drain       time.Duration // for how long Run goes on with the records in flight when its context ends; 0: 10 s

	Log *slog.Logger // nil: nothing is logged
}

const (
	defaultBatch       = 256
	defaultCommitEvery = 5 * time.Millisecond
	mostBytes          = 32 << 20 // of the records in flight, after which no more are polled
	defaultMaxRecord   = 1 << 20
	defaultRecent      = 1 << 16
	defaultDrain       = 10 * time.Second
)

// Catalog says what is registered, and so which streams are suspended; stores do.
type Catalog interface {
	// Watch calls fn with the catalog as it is and after each change, until ctx ends.
	Watch(ctx context.Context, fn func(*serving.Catalog)) error
}

// Problems are everything that is wrong with what a job of this kind is to do. They do not look
// at the consumer.
func (c *Config) Problems(k Kind) (errs []error) {
	wrong := func(text string) { errs = append(errs, fmt.Errorf("%s %q: %s", k.Stream, c.Name, text)) }
	if c.Name == "" {
		wrong("it needs a name")
	}
	if c.Output == "" {
		wrong("it needs an output, the stream of " + k.Result + "s")
	}
	switch {
	case c.DeadLetter == "":
		wrong("it needs a dead_letter, the stream of " + k.DeadLetters)
	case slices.Contains(c.Streams, c.DeadLetter):
		wrong("dead_letter is an input, too: what goes there would be read again forever")
	}
	if c.Output != "" && slices.Contains(c.Streams, c.Output) {
		wrong("output is an input, too: what goes there would be read again forever")
	}
	if c.Batch < 0 || c.MaxRecord < 0 || c.Recent < 0 || c.Drain < 0 {
		wrong("no size, number and time may be negative")
	}
	return errs
}
