package models

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"topsail/serving"
	"topsail/stream"
	"topsail/stream/internal/letter"
)

// batch is the records of one poll on their way to their acknowledgements.
type batch struct {
	job   *Job
	items []item
}

// item is one record.
type item struct {
	record   *serving.StreamRecord
	print    [sha256.Size]byte // of its value
	update   Update
	ack      Acknowledgement
	poison   *poison       // nil: it gets an acknowledgement
	repeated bool          // it is committed already, and gets nothing more
	length   letter.Length // of its dead letter
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
		if it.poison = b.job.decode(it); it.poison == nil {
			it.poison = b.job.identify(it, seen)
		}
		if it.poison == nil && !it.repeated {
			seen[it.update.UUID] = known{letter.Place(it.record), it.print}
		}
	}
}

// decode reads the message of a record.
func (j *Job) decode(it *item) *poison {
	if why := it.record.Unread; why != "" {
		return poisoned(RecordTooLarge, "%s", why)
	}
	if n := letter.Size(it.record); n > j.cfg.MaxRecord {
		return poisoned(RecordTooLarge, "the update has %d bytes, and the job takes %d: raise max_record_bytes, or put the model at a location", n, j.cfg.MaxRecord)
	}
	format, err := j.cfg.Format, error(nil)
	if format == stream.AnyFormat {
		format, err = stream.FormatOf(letter.Header(it.record, stream.HeaderContentType), it.record.Value)
	}
	if err == nil {
		it.update, err = ParseUpdate(it.record.Value, format)
	}
	if err != nil {
		return poisoned(Unreadable, "%v", err)
	}
	return nil
}

// identify holds the id of an update to those that came before it. The same message may come
// twice: to apply it again changes nothing.
func (j *Job) identify(it *item, seen map[string]known) *poison {
	id := it.update.UUID
	if id == "" {
		return poisoned(NoID, "the message has no uuid, by which its acknowledgement would be known: give it one")
	}
	before, again := j.recent.Of(id)
	if !again {
		before, again = seen[id]
	}
	switch here := letter.Place(it.record); {
	case !again:
	case before.place == here:
		it.repeated = true
	case before.print != it.print:
		return poisoned(RepeatedID, "an id twice: another update had the uuid %.100q, at %s", id, before.place)
	}
	return nil
}

// apply applies the updates: those of one model or app in their order, others beside each
// other. Updates may need each other, so one that misses an app or a model is put off until
// the others are done, and waited for only when that brings nothing. It fails only when the
// job ends.
func (b *batch) apply(ctx context.Context) error {
	left, patient := b.groups(), false
	for len(left) > 0 {
		before := count(left)
		var err error
		if left, err = b.round(ctx, left, patient); err != nil {
			return err
		}
		patient = count(left) == before
	}
	return nil
}

// round applies groups of updates, and returns what was put off.
func (b *batch) round(ctx context.Context, groups [][]*item, patient bool) (left [][]*item, err error) {
	errs, room := make([]error, len(groups)), make(chan struct{}, b.job.cfg.Concurrency)
	var applying sync.WaitGroup
	for i := range groups {
		room <- struct{}{} // nobody stays longer than ctx lets them
		applying.Go(func() {
			defer func() { <-room }()
			for len(groups[i]) > 0 && errs[i] == nil {
				if errs[i] = b.job.apply(ctx, groups[i][0], patient); errs[i] == nil {
					groups[i] = groups[i][1:]
				}
			}
		})
	}
	applying.Wait()
	for i, group := range groups {
		if _, missing := errors.AsType[errMissing](errs[i]); missing {
			left = append(left, group)
		} else if errs[i] != nil {
			return nil, errs[i]
		}
	}
	return left, nil
}

// groups are the updates of each model, and of each app.
func (b *batch) groups() [][]*item {
	var groups [][]*item
	at := map[string]int{}
	for i := range b.items {
		it := &b.items[i]
		if it.poison != nil || it.repeated {
			continue
		}
		name := it.update.about()
		if _, there := at[name]; !there {
			at[name] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[name]] = append(groups[at[name]], it)
	}
	return groups
}

func count(groups [][]*item) (n int) {
	for _, group := range groups {
		n += len(group)
	}
	return n
}

// apply applies one update. Unless it is to be patient it fails with errMissing at once.
func (j *Job) apply(ctx context.Context, it *item, patient bool) (err error) {
	began, u := time.Now(), &it.update
	origin := originOf(j.cfg.Name, it.record, u)
	var w work
	if u.Model != nil {
		d := &deployment{job: j, model: u.Model, origin: origin}
		defer func() { d.parcel.remove() }()
		w = d
	} else {
		w = &configuration{job: j, ensemble: u.Ensemble, origin: origin}
	}
	it.ack, it.poison, err = j.finish(ctx, "apply an update of "+u.about(), w, patient)
	it.ack.UUID = u.UUID
	if err == nil {
		j.metrics.apply.Observe(time.Since(began).Seconds())
	}
	return err
}

// Shorten makes an acknowledgement a dead letter, and one of these shorter.
func (b *batch) Shorten(record int, why error) bool {
	it := &b.items[record]
	if it.poison == nil {
		it.poison = poisoned(AnswerTooLarge, "the update is applied, and its acknowledgement is too large for its stream: %v", why)
		return true
	}
	return it.length.Shorten()
}

// Message is an acknowledgement, or a dead letter. A record that comes again gets nothing.
func (b *batch) Message(record int) (m serving.StreamMessage, some bool) {
	switch it := &b.items[record]; {
	case it.repeated:
		return m, false
	case it.poison != nil:
		return b.job.letters.Letter(it.record, it.poison.why(), it.length), true
	default:
		return it.acknowledge(b.job.cfg.Output), true
	}
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
		switch {
		case it.repeated:
			tally.Repeated++
			continue
		case it.poison != nil:
			tally.DeadLetters++
			j.metrics.dead[it.poison.reason].Inc()
			j.troubles.Note("dead letter: " + it.poison.text)
			j.cfg.Log.Warn("an update became a dead letter", "kind", it.poison.reason, "why", it.poison.text, "place", letter.Place(it.record))
			continue
		}
		tally.Outcomes[it.ack.Outcome]++
		j.metrics.outcomes[it.ack.Outcome].Inc()
		j.cfg.Log.Info("an update is applied", "outcome", it.ack.Outcome, "about", it.update.about(), "version", it.ack.Version)
		j.recent.Add(it.update.UUID, known{letter.Place(it.record), it.print})
	}
	j.counts.commit(tally, letter.Place(b.items[len(b.items)-1].record), now)
}
