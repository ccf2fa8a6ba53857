package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"topsail/serving"
)

// batch is the records of one poll on their way to their results.
type batch struct {
	job   *Job
	began time.Time
	items []item
}

// item is one record.
type item struct {
	record     *serving.StreamRecord
	request    Request
	query      serving.Query
	prediction serving.Prediction
	poison     *poison // nil: it gets a result
	repeated   bool    // its result is committed already, and it gets nothing more
	tooLarge   int     // how often the broker has found its dead letter too large
}

// place is where a record is, in all streams.
func place(r *serving.StreamRecord) string { return r.Stream + "\x00" + r.Place }

// read decodes the records. It waits for apps that the job cannot do without, and fails
// only when ctx ends.
func (b *batch) read(ctx context.Context, records []serving.StreamRecord) error {
	seen := make(map[string]string, len(records)) // ids of this batch
	for i := range records {
		it := &b.items[i]
		it.record = &records[i]
		if it.poison = b.job.decode(it); it.poison == nil {
			it.poison = b.job.identify(it, seen)
		}
		if it.poison != nil || it.repeated {
			continue
		}
		if err := b.job.address(ctx, it); err != nil {
			return err
		}
		if it.poison == nil { // what gets no result may be sent again, mended, under its id
			seen[it.request.UUID] = place(it.record)
		}
	}
	return nil
}

// decode reads the message of a record.
func (j *Job) decode(it *item) *poison {
	if n := size(it.record); n > j.cfg.MaxRecord {
		return poisoned(RecordTooLarge, "the record has %d bytes, and the job takes %d: raise max_record_bytes, or send less", n, j.cfg.MaxRecord)
	}
	format, err := j.cfg.Format, error(nil)
	if format == AnyFormat {
		format, err = formatOf(header(it.record, HeaderContentType), it.record.Value)
	}
	if err == nil {
		it.request, err = ParseRequest(it.record.Value, format)
	}
	if err != nil {
		return poisoned(Unreadable, "%v", err)
	}
	return nil
}

func size(r *serving.StreamRecord) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return n
}

// header is the last value of a header; empty where there is none.
func header(r *serving.StreamRecord, name string) (value string) {
	for _, h := range r.Headers {
		if h.Name == name {
			value = string(h.Value)
		}
	}
	return value
}

// identify holds the id of a record to those that came before it.
func (j *Job) identify(it *item, seen map[string]string) *poison {
	id, here := it.request.UUID, place(it.record)
	if id == "" {
		return poisoned(NoID, "the message has no uuid, by which its result would be known: give it one")
	}
	before, known := j.recent.place(id)
	if !known {
		before, known = seen[id]
	}
	switch {
	case !known:
	case before == here:
		it.repeated = true
	default:
		return poisoned(RepeatedID, "an id twice: another record had the uuid %.100q, at %s", id, readable(before))
	}
	return nil
}

// readable is a place as people write it.
func readable(place string) string {
	b := []byte(place)
	for i, c := range b {
		if c == 0 {
			b[i] = ' '
		}
	}
	return string(b)
}

// address makes the query of a record. It waits for the app if that is the job's own.
func (j *Job) address(ctx context.Context, it *item) error {
	name, why := j.appOf(it)
	if why != nil {
		it.poison = why
		return nil
	}
	app, err := j.app(ctx, name)
	if errors.Is(err, serving.ErrUnknownApp) {
		it.poison = unknownApp(name)
		return nil
	}
	if err != nil {
		return err
	}
	input, err := it.request.Input(app.InputType)
	if err != nil {
		it.poison = poisoned(WrongInput, "%v", err)
		return nil
	}
	it.query = serving.Query{
		App: name, Input: input, User: it.request.User, Context: it.request.Context,
		Affinity: j.spreader.affinity(it.record, &it.request),
	}
	return nil
}

func unknownApp(name string) *poison {
	return poisoned(UnknownApp, "there is no app %q: register it, and send the record again", name)
}

// appOf is the app that a record is for.
func (j *Job) appOf(it *item) (name string, why *poison) {
	said := it.request.App
	if said == "" {
		said = header(it.record, HeaderApp)
	}
	switch app, known := j.cfg.Apps[said]; {
	case known:
		return app, nil
	case said == "" && j.cfg.App == "":
		return "", poisoned(UnknownApp, "the record names no app, and the job has none for such records: set app in the message, or the header %s", HeaderApp)
	case said == "" || said == j.cfg.App:
		return j.cfg.App, nil
	}
	return "", poisoned(UnknownApp, "the record names the app %.100q, which is none of the job's", said)
}

// app finds an app. It waits while none is known, and for the job's own: all records
// would be dead letters without it.
func (j *Job) app(ctx context.Context, name string) (*serving.App, error) {
	pause := backoff{}
	for ctx.Err() == nil {
		app, err := j.cfg.Scorer.App(name)
		if err == nil {
			j.troubles.end(predictThem)
			return app, nil
		}
		if errors.Is(err, serving.ErrUnknownApp) && name != j.cfg.App {
			return nil, err
		}
		j.troubles.begin(predictThem, fmt.Errorf("app %q: %w", name, err))
		pause.wait(ctx)
	}
	return nil, context.Cause(ctx)
}

// predict has all records predicted, side by side. It fails only when ctx ends.
func (b *batch) predict(ctx context.Context) error {
	var asking sync.WaitGroup
	for i := range b.items {
		it := &b.items[i]
		if it.poison != nil || it.repeated {
			continue
		}
		number, err := b.job.pace.enter(ctx)
		if err != nil {
			break
		}
		asking.Go(func() { b.job.ask(ctx, it, number) })
	}
	asking.Wait()
	if ctx.Err() == nil {
		b.job.troubles.end(predictThem)
	}
	return context.Cause(ctx)
}

// ask predicts one record, which has entered the pace, with the patience that the job has.
func (j *Job) ask(ctx context.Context, it *item, number uint64) {
	began, pause := time.Now(), backoff{}
	for {
		query := it.query // which the scorer marks with when it got it
		p, err := j.cfg.Scorer.Predict(ctx, &query)
		j.pace.leave(number, err == nil && p.Default && overload(p.Cause))
		if j.take(it, p, err) {
			break
		}
		wait := pause.next()
		if err == nil && time.Since(began)+wait > j.cfg.Patience {
			break // the default is the answer
		}
		if err != nil && ctx.Err() == nil {
			j.troubles.begin(predictThem, err)
		}
		j.metrics.again.Inc()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if number, err = j.pace.enter(ctx); err != nil {
			return
		}
	}
	j.metrics.predict.Observe(time.Since(began).Seconds())
}

// take takes what a record was answered, and says whether that was the last word.
func (j *Job) take(it *item, p serving.Prediction, err error) (done bool) {
	if err == nil {
		it.prediction = p
		return !p.Default || !passing(p.Cause) || j.cfg.Patience == 0
	}
	refused, isRefused := errors.AsType[*serving.QueryError](err)
	switch {
	case isRefused:
		it.poison = poisoned(WrongInput, "%s", refused.Cause)
		return true
	case errors.Is(err, serving.ErrUnknownApp) && it.query.App != j.cfg.App:
		it.poison = unknownApp(it.query.App)
		return true
	}
	return false // the catalog is away, or it is deleted and may come back
}

// overload says whether an answer is missing because more is asked than can be answered.
func overload(c serving.Cause) bool {
	return c == serving.MissedSLO || c == serving.RefusedFull || c == serving.RefusedLate
}

// passing says whether an answer may be had later.
func passing(c serving.Cause) bool {
	return overload(c) || c == serving.NoReplica || c == serving.Draining || c == serving.ContainerError
}

// commit produces the results and commits the records. A message that is too large
// becomes a dead letter, and one of these a shorter one.
func (b *batch) commit(ctx context.Context) error {
	b.refuseDefaults()
	pause := backoff{}
	for {
		messages, owners := b.messages()
		err := b.job.cfg.Consumer.Commit(ctx, messages)
		large, ok := errors.AsType[TooLarge](err)
		if !ok {
			return err
		}
		if i := large.TooLarge(); i < 0 || i >= len(owners) || !owners[i].shorten(err) {
			b.job.troubles.begin(commitRecords, err) // until somebody has the broker take more
			b.job.metrics.failures.commit.Inc()
			pause.wait(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (b *batch) refuseDefaults() {
	for i := range b.items {
		it := &b.items[i]
		if p := &it.prediction; b.job.cfg.NoDefaults && p.Default && it.poison == nil {
			it.poison = poisoned(GaveDefault, "the answer was the default: %s", p.Explanation)
		}
	}
}

// shorten makes the message of a record shorter, if that can be.
func (it *item) shorten(err error) bool {
	if it.poison == nil {
		it.poison = poisoned(ResultTooLarge, "the result is too large for its stream: %v", err)
		return true
	}
	it.tooLarge = min(it.tooLarge+1, len(kept))
	return it.tooLarge < len(kept)
}

// messages are the results and dead letters in the order of their records, and whose each is.
func (b *batch) messages() (messages []serving.StreamMessage, owners []*item) {
	messages, owners = make([]serving.StreamMessage, 0, len(b.items)), make([]*item, 0, len(b.items))
	cfg := &b.job.cfg
	for i := range b.items {
		it := &b.items[i]
		switch {
		case it.repeated:
			continue
		case it.poison != nil:
			messages = append(messages, deadLetter(cfg.Name, cfg.DeadLetter, it.record, it.poison, min(it.tooLarge, len(kept)-1)))
		default:
			messages = append(messages, it.result(cfg.Output))
		}
		owners = append(owners, it)
	}
	return messages, owners
}

// result is the message of a prediction.
func (it *item) result(to string) serving.StreamMessage {
	response := newResponse(it.request.UUID, &it.prediction)
	return serving.StreamMessage{
		Stream: to, Key: it.record.Key, Value: response.append(nil, it.request.Format),
		Headers: []serving.StreamHeader{{Name: HeaderContentType, Value: []byte(it.request.Format.ContentType())}},
	}
}

// done counts what was committed, and remembers the ids.
func (b *batch) done() {
	now, j := time.Now(), b.job
	j.metrics.batch.Observe(float64(len(b.items)))
	tally := Tally{Records: uint64(len(b.items))}
	for i := range b.items {
		it := &b.items[i]
		j.metrics.age.Observe(max(now.Sub(it.record.At), 0).Seconds())
		switch {
		case it.repeated:
			tally.Repeated++
			j.metrics.repeated.Inc()
			continue
		case it.poison != nil:
			tally.DeadLetters++
			j.metrics.dead.Inc()
			j.metrics.reasons[it.poison.reason].Inc()
			j.troubles.note("dead letter: " + it.poison.text)
			continue
		case it.prediction.Default:
			tally.Defaults++
			j.metrics.defaults.Inc()
		default:
			j.metrics.predicted.Inc()
		}
		tally.Results++
		j.recent.add(it.request.UUID, place(it.record))
	}
	last := b.items[len(b.items)-1].record
	j.counts.commit(tally, last.Stream+" "+last.Place, now)
}
