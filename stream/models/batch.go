package models

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/internal/deadletter"
)

// batch is the records of one poll on their way to their acknowledgements.
type batch struct {
	job   *Job
	items []item
}

// item is one record.
type item struct {
	record      *serving.StreamRecord
	print       [sha256.Size]byte // of its value
	update      Update
	ack         Acknowledgement
	rejection   *rejection        // nil: it gets an acknowledgement
	applied     bool              // the same update was acknowledged before
	redelivered bool              // and that at the same place: the broker forgot it
	length      deadletter.Length // of its dead letter
}

// known is an update that was acknowledged.
type known struct {
	place string
	print [sha256.Size]byte
}

// read decodes the records.
func (b *batch) read(records []serving.StreamRecord) {
	seen := make(map[string]known, len(records)) // ids of this batch
	for i := range records {
		it := &b.items[i]
		it.record, it.print = &records[i], sha256.Sum256(records[i].Value)
		if it.rejection = b.job.decode(it); it.rejection == nil {
			it.rejection = b.job.identify(it, seen)
		}
		if it.rejection == nil {
			seen[it.update.UUID] = known{deadletter.Place(it.record), it.print}
		}
	}
}

// decode reads the message of a record.
func (j *Job) decode(it *item) *rejection {
	if why := it.record.Unread; why != "" {
		return rejected(RecordTooLarge, "%s", why)
	}
	if n := deadletter.Size(it.record); n > j.cfg.MaxRecord {
		return rejected(RecordTooLarge, "the update has %d bytes, and the job takes %d: raise max_record_bytes, or put the model at a location", n, j.cfg.MaxRecord)
	}
	format, err := j.cfg.Format, error(nil)
	if format == stream.AnyFormat {
		format, err = stream.FormatOf(deadletter.Header(it.record, stream.HeaderContentType), it.record.Value)
	}
	if err == nil {
		it.update, err = ParseUpdate(it.record.Value, format)
	}
	if err != nil {
		return rejected(Unreadable, "%v", err)
	}
	return nil
}

// identify holds the id of an update to those that came before it. The same message may come
// twice: to apply it again changes nothing.
func (j *Job) identify(it *item, seen map[string]known) *rejection {
	id := it.update.UUID
	if id == "" {
		return rejected(NoID, "the message has no uuid, by which its acknowledgement would be known: give it one")
	}
	before, again := j.recent.Of(id)
	if !again {
		before, again = seen[id]
	}
	switch here := deadletter.Place(it.record); {
	case !again:
	case before.print == it.print:
		it.applied, it.redelivered = true, before.place == here
	case before.place != here: // else its topic was made anew
		return rejected(DuplicateID, "an id twice: another update had the uuid %.100q, at %s", id, before.place)
	}
	return nil
}

// manner is how a round goes about what updates miss.
type manner int

const (
	inOrder   manner = iota // an update is put off together with those that follow it
	asTheyCan               // what follows as an app's may bring what is missing, and is not put off
	patiently               // what is missing is waited for
)

// apply applies the updates: those of one model or app in their order, others beside each
// other. Updates may need each other, so one that misses an app or a model is put off until
// the others are done, and waited for only when that brings nothing. It fails only when the
// job ends.
func (b *batch) apply(ctx context.Context) error {
	var left []*item
	for i := range b.items {
		if it := &b.items[i]; it.rejection == nil {
			left = append(left, it)
		}
	}
	for how := inOrder; len(left) > 0; {
		before := len(left)
		var err error
		if left, err = b.round(ctx, left, how); err != nil {
			return err
		}
		if how++; len(left) < before {
			how = inOrder
		}
	}
	return nil
}

// try is an update in one round.
type try struct {
	*item
	over chan struct{} // closed when it is
	err  error         // why the update is not applied
}

// round applies updates, and returns what was put off.
func (b *batch) round(ctx context.Context, updates []*item, how manner) (left []*item, err error) {
	tries, room := make([]try, len(updates)), make(chan struct{}, b.job.cfg.Concurrency)
	for i, it := range updates {
		tries[i] = try{item: it, over: make(chan struct{})}
	}
	var applying sync.WaitGroup
	for i := range tries {
		t := &tries[i]
		applying.Go(func() {
			defer close(t.over)
			if t.err = t.wait(tries[:i], how); t.err != nil {
				return
			}
			room <- struct{}{} // nobody stays longer than ctx lets them
			defer func() { <-room }()
			t.err = b.job.apply(ctx, t.item, how == patiently)
		})
	}
	applying.Wait()
	for _, t := range tries {
		if _, missing := errors.AsType[errMissing](t.err); missing {
			left = append(left, t.item)
		} else if t.err != nil {
			return nil, t.err
		}
	}
	return left, nil
}

// wait waits for those of the updates before it that an update follows. It fails as they did.
func (t *try) wait(before []try, how manner) error {
	for i := range before {
		one := &before[i]
		if one.update.about() != t.update.about() && (how != inOrder || !one.update.sharesApp(&t.update)) {
			continue
		}
		if <-one.over; one.err != nil {
			return one.err
		}
	}
	return nil
}

// apply applies one update. Unless it is to be patient it fails with errMissing at once.
func (j *Job) apply(ctx context.Context, it *item, patient bool) (err error) {
	began, u := time.Now(), &it.update
	origin := originOf(j.cfg.Name, it.record, u)
	var w work
	if u.Model != nil {
		d := &deployment{job: j, model: u.Model, origin: origin, linked: it.applied}
		defer func() { d.parcel.remove() }()
		w = d
	} else {
		w = &configuration{job: j, ensemble: u.Ensemble, origin: origin}
	}
	it.ack, it.rejection, err = j.finish(ctx, "apply an update of "+u.about(), w, patient)
	it.ack.UUID = u.UUID
	if err == nil {
		j.metrics.apply.Observe(time.Since(began).Seconds())
	}
	return err
}

// Shorten makes an acknowledgement a dead letter, and one of these shorter.
func (b *batch) Shorten(record int, why error) bool {
	it := &b.items[record]
	if it.rejection == nil {
		it.rejection = rejected(AnswerTooLarge, "the update is applied, and its acknowledgement is too large for its stream: %v", why)
		return true
	}
	return it.length.Shorten()
}

// Message is an acknowledgement, or a dead letter.
func (b *batch) Message(record int) serving.StreamMessage {
	it := &b.items[record]
	if it.rejection != nil {
		return b.job.deadLetters.Message(it.record, it.rejection.why(), it.length)
	}
	return it.acknowledge(b.job.cfg.Output)
}

// acknowledge is the message of an update that was applied.
func (it *item) acknowledge(to string) serving.StreamMessage {
	return serving.StreamMessage{
		Stream: to, Key: it.record.Key, Value: it.ack.append(nil, it.update.Format),
		Headers: []serving.StreamHeader{{Name: stream.HeaderContentType, Value: []byte(it.update.Format.ContentType())}},
	}
}

// Done counts what was committed, and remembers the ids.
func (b *batch) Done() {
	now, j := time.Now(), b.job
	tally := Tally{Updates: uint64(len(b.items)), Outcomes: map[string]uint64{}}
	for i := range b.items {
		it := &b.items[i]
		j.metrics.age.Observe(max(now.Sub(it.record.At), 0).Seconds())
		if it.redelivered {
			tally.Redelivered++
		}
		if it.rejection != nil {
			tally.DeadLetters++
			j.metrics.dead[it.rejection.reason].Inc()
			j.conditions.Note("dead letter: " + it.rejection.text)
			j.cfg.Log.Warn("an update became a dead letter", "kind", it.rejection.reason, "why", it.rejection.text, "place", deadletter.Place(it.record))
			continue
		}
		tally.Outcomes[it.ack.Outcome]++
		j.metrics.outcomes[it.ack.Outcome].Inc()
		j.cfg.Log.Info("an update is applied", "outcome", it.ack.Outcome, "about", it.update.about(), "version", it.ack.Version)
		j.recent.Add(it.update.UUID, known{deadletter.Place(it.record), it.print})
	}
	j.counts.commit(tally, deadletter.Place(b.items[len(b.items)-1].record), now)
}
