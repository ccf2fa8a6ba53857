package stream

import (
	"context"
	"errors"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// polls polls records and has them handled for as long as there is room for more, until ctx ends.
func (j *Job) polls(ctx, work context.Context) {
	for pause := Backoff(); ctx.Err() == nil; {
		records, err := j.poll(ctx)
		if err != nil {
			pause.Sleep(ctx)
			continue
		}
		j.begin(ctx, work, records)
		pause.Reset()
	}
}

// poll returns the next records; none where the stream was suspended meanwhile.
func (j *Job) poll(ctx context.Context) ([]serving.StreamRecord, error) {
	if err := j.Gate.Wait(ctx); err != nil {
		return nil, err
	}
	open, cancel := j.Gate.While(ctx)
	defer cancel()
	room := j.window.awaitRoom(open)
	if room == 0 {
		return nil, nil // it is suspended
	}
	records, err := j.cfg.Consumer.Poll(open, room)
	if err == nil && len(records) == 0 {
		err = errNothing
	}
	switch {
	case err == nil:
		j.Conditions.End(pollRecords)
	case open.Err() == nil:
		j.failed(polling, pollRecords, err)
	case ctx.Err() == nil:
		return nil, nil // it is suspended
	}
	return records, err
}

var errNothing = errors.New("the consumer returned neither records nor an error")

// begin has records handled, each in its turn. Those that it does not come to before ctx ends are redelivered.
func (j *Job) begin(ctx, work context.Context, records []serving.StreamRecord) {
	now, items, contexts := time.Now(), make([]*Item, len(records)), make([]context.Context, len(records))
	for i := range records {
		items[i], contexts[i] = newItem(work, &records[i], now)
	}
	j.window.dropLost() // of which some may be here again
	j.window.add(items)
	for i, it := range items {
		if ctx.Err() != nil || !j.handle(ctx, contexts[i], it) {
			j.window.abandon(items[i:]...)
			return
		}
	}
}

// handle has an item handled as far as it can be. It says false where the record is to be redelivered.
func (j *Job) handle(ctx, handling context.Context, it *Item) bool {
	err := j.accept(ctx, it)
	if rejection, is := errors.AsType[*Rejection](err); is {
		it.Rejection = rejection // and may be corrected and sent again under its id
		j.window.finish(it)
		return true
	}
	if err != nil {
		return false
	}
	j.window.name(it)
	j.handling.Add(1)
	j.handler.Handle(handling, it, func(err error) {
		defer j.handling.Done()
		if err != nil {
			j.window.abandon(it) // unless it is lost
			return
		}
		j.window.finish(it)
	})
	return true
}

// accept reads a record as far as it can be handled. Its error is a rejection, or says that the
// record is to be redelivered.
func (j *Job) accept(ctx context.Context, it *Item) error {
	if err := j.parse(ctx, it); err != nil {
		return err
	}
	if err := j.identify(it); err != nil {
		return err
	}
	return it.Message.Prepare(ctx)
}

// parse reads the message of a record.
func (j *Job) parse(ctx context.Context, it *Item) error {
	r := it.Record
	if n := r.Size(); n > j.cfg.MaxRecord {
		return Rejected(RecordTooLarge, "the %s has %d bytes, and the job takes %d: raise max_record_bytes, or %s", j.kind.Record, n, j.cfg.MaxRecord, j.kind.Shrink)
	}
	return j.message(ctx, it)
}

// identify holds the id of a record to those that came before it.
func (j *Job) identify(it *Item) error {
	it.id, it.known.checksum = it.Message.ID()
	it.known.position = it.Position
	if it.id == "" {
		return Rejected(NoID, "the message has no uuid, by which its %s would be known: give it one", j.kind.Result)
	}
	before, is := j.window.of(it.id)
	if !is {
		before, is = j.recent.of(it.id)
	}
	if !is {
		return nil
	}
	if why := it.identify(before, j.kind); why != nil {
		return why
	}
	return nil
}
