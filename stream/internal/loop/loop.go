// Package loop goes round: it polls a batch of records, has them worked on, and commits
// what came of them. What it cannot do it tries again.
package loop

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/internal/condition"
)

// Consumer is a member of a consumer group; package stream says what it promises.
type Consumer interface {
	Poll(ctx context.Context, most int) ([]serving.StreamRecord, error)
	Commit(ctx context.Context, results []serving.StreamMessage) error
}

// tooLarge is an error of Commit that names a message which is larger than the broker takes.
type tooLarge interface {
	error
	TooLarge() (message int)
}

// Batch is what came of the records of a poll, which it knows by their places in it.
type Batch interface {
	// Message is what a record gets: a result, or a dead letter.
	Message(record int) serving.StreamMessage
	// Shorten makes the message of a record shorter, which the broker found too large, if
	// that can be.
	Shorten(record int, why error) (shorter bool)
	// Done is called when the messages and the records are committed.
	Done()
}

// Operations that may fail, as metrics call them.
const (
	Poll   = "poll"
	Commit = "commit"
)

// What can be failing.
const (
	pollRecords   = "poll records"
	commitRecords = "commit results"
)

// Loop is a job but for what it is about. All but Most and Stuck is required.
type Loop struct {
	Consumer Consumer
	Most     int           // records of a batch
	Drain    time.Duration // for how long Run goes on with the records in flight when its context ends
	Gate     *Gate
	Tracker  *condition.Tracker
	// Work does what there is to do about records. It fails where they are to be redelivered.
	Work   func(ctx context.Context, records []serving.StreamRecord) (Batch, error)
	Stuck  func() bool            // says that work gets no further, so that Drain is not waited for; nil: that is not known
	Failed func(operation string) // is told of every failure of the broker
	Lost   func()                 // is told of batches that belonged to another member when they were to be committed

	mu     sync.Mutex
	inHand int       // records that are polled and not committed
	taken  time.Time // when they came
	lost   uint64
	losses [2]time.Time // when the last two batches were lost
	lag    lag
}

// Run goes round until ctx ends; then it finishes the records in flight, if that takes no
// longer than Drain. What it could not finish is not committed, and comes again, to
// another member once the consumer is closed.
func (l *Loop) Run(ctx context.Context) {
	work, stop := after(ctx, l.Drain, l.Stuck)
	defer stop()
	var following sync.WaitGroup
	defer following.Wait()
	if consumer, ok := l.Consumer.(lagging); ok {
		following.Go(func() { l.follow(ctx, consumer) })
	}
	pause := Pause{}
	for ctx.Err() == nil {
		records, err := l.poll(ctx)
		if err == nil && len(records) > 0 {
			err = l.serve(work, records)
		}
		if err != nil {
			pause.Wait(ctx)
			continue
		}
		pause = Pause{}
	}
}

// poll returns the next records; none where the gate has closed meanwhile.
func (l *Loop) poll(ctx context.Context) ([]serving.StreamRecord, error) {
	if err := l.Gate.Wait(ctx); err != nil {
		return nil, err
	}
	open, cancel := l.Gate.While(ctx)
	defer cancel()
	records, err := l.Consumer.Poll(open, l.Most)
	if err == nil && len(records) == 0 {
		err = errNothing
	}
	switch {
	case err == nil:
		l.Tracker.End(pollRecords)
	case open.Err() == nil:
		l.Tracker.Begin(pollRecords, err)
		l.Failed(Poll)
	case ctx.Err() == nil:
		return nil, nil // it is suspended
	}
	return records, err
}

var errNothing = errors.New("the consumer returned neither records nor an error")

// serve brings records to what comes of them and commits both. Its error says that they
// were not committed.
func (l *Loop) serve(ctx context.Context, records []serving.StreamRecord) error {
	l.take(len(records))
	defer l.take(0)
	batch, err := l.Work(ctx, records)
	if err != nil {
		return err
	}
	err = l.commit(ctx, batch, len(records))
	switch {
	case err == nil:
		l.Tracker.End(commitRecords)
		batch.Done()
	case errors.Is(err, serving.ErrRecordsLost):
		l.Tracker.End(commitRecords)
		l.Tracker.Note(err.Error()) // to be expected when members come and go
		l.Lost()
		l.mu.Lock()
		l.lost++
		l.losses = [2]time.Time{l.losses[1], time.Now()}
		l.mu.Unlock()
	case ctx.Err() == nil:
		l.Tracker.Begin(commitRecords, err)
		l.Failed(Commit)
	}
	return err
}

// commit produces the messages of so many records and commits these. A message that is
// too large becomes shorter.
func (l *Loop) commit(ctx context.Context, batch Batch, records int) error {
	pause := Pause{}
	for {
		messages := make([]serving.StreamMessage, records)
		for record := range messages {
			messages[record] = batch.Message(record)
		}
		err := l.Consumer.Commit(ctx, messages)
		large, ok := errors.AsType[tooLarge](err)
		if !ok {
			return err
		}
		if record := large.TooLarge(); record < 0 || record >= records || !batch.Shorten(record, err) {
			l.Tracker.Begin(commitRecords, err) // until somebody has the broker take more
			l.Failed(Commit)
			pause.Wait(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (l *Loop) take(records int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inHand, l.taken = records, time.Now()
}

// InHand is how many records are polled and not committed, and for how long they have been.
func (l *Loop) InHand() (records int, held time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inHand == 0 {
		return 0, 0
	}
	return l.inHand, time.Since(l.taken)
}

// losing is for how long it is told that batches are lost, of which one alone is normal when
// members come and go.
const losing = time.Minute

// Err says what cannot be done at present, or nil.
func (l *Loop) Err() error {
	if l.loses() {
		return errors.Join(l.Tracker.Err(), errLosing)
	}
	return l.Tracker.Err()
}

// Conditions are what cannot be done at present, in a few words each.
func (l *Loop) Conditions() []string {
	all := l.Tracker.What()
	if l.loses() {
		all = append(all, "keep its records")
	}
	for i := range all {
		all[i] = "cannot " + all[i]
	}
	return all
}

func (l *Loop) loses() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.losses[0].IsZero() && time.Since(l.losses[0]) <= losing
}

var errLosing = errors.New("cannot keep its records: several batches belonged to another member when they were to be committed; does another process have the same name (streams.name), or does this one stand still?")

// LostBatches is how many batches belonged to another member when they were to be committed.
func (l *Loop) LostBatches() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}
