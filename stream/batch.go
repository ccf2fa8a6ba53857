package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/internal/deadletter"
	"github.com/topsail-serving/topsail/stream/internal/loop"
)

// batch is the records of one poll on their way to their results.
type batch struct {
	job   *Job
	items []item
}

// item is one record.
type item struct {
	record      *serving.StreamRecord
	request     Request
	query       serving.Query
	objective   time.Duration // of the app
	prediction  serving.Prediction
	rejection   *rejection        // nil: it gets a result
	redelivered bool              // the broker forgot that it was committed
	length      deadletter.Length // of its dead letter
}

// read decodes the records. It waits for apps that the job cannot do without, and fails
// only when ctx ends.
func (b *batch) read(ctx context.Context, records []serving.StreamRecord) error {
	seen := make(map[string]string, len(records)) // ids of this batch
	for i := range records {
		it := &b.items[i]
		it.record = &records[i]
		if it.rejection = b.job.decode(it); it.rejection == nil {
			it.rejection = b.job.identify(it, seen)
		}
		if it.rejection != nil {
			continue
		}
		if err := b.job.address(ctx, it); err != nil {
			return err
		}
		if it.rejection == nil { // what gets no result may be sent again, mended, under its id
			seen[it.request.UUID] = deadletter.Place(it.record)
		}
	}
	return nil
}

// decode reads the message of a record.
func (j *Job) decode(it *item) *rejection {
	if why := it.record.Unread; why != "" {
		return rejected(RecordTooLarge, "%s", why)
	}
	if n := deadletter.Size(it.record); n > j.cfg.MaxRecord {
		return rejected(RecordTooLarge, "the record has %d bytes, and the job takes %d: raise max_record_bytes, or send less", n, j.cfg.MaxRecord)
	}
	format, err := j.cfg.Format, error(nil)
	if format == AnyFormat {
		format, err = FormatOf(deadletter.Header(it.record, HeaderContentType), it.record.Value)
	}
	if err == nil {
		it.request, err = ParseRequest(it.record.Value, format)
	}
	if err != nil {
		return rejected(Unreadable, "%v", err)
	}
	return nil
}

// identify holds the id of a record to those that came before it. A broker that lost what was
// committed, and sends a record again, lost its result too: it gets one like every other.
func (j *Job) identify(it *item, seen map[string]string) *rejection {
	id, here := it.request.UUID, deadletter.Place(it.record)
	if id == "" {
		return rejected(NoID, "the message has no uuid, by which its result would be known: give it one")
	}
	before, known := j.recent.Of(id)
	if !known {
		before, known = seen[id]
	}
	switch {
	case !known:
	case before == here:
		it.redelivered = true
	default:
		return rejected(DuplicateID, "an id twice: another record had the uuid %.100q, at %s", id, before)
	}
	return nil
}

// address makes the query of a record. It waits for the app if that is the job's own.
func (j *Job) address(ctx context.Context, it *item) error {
	name, why := j.appOf(it)
	if why != nil {
		it.rejection = why
		return nil
	}
	app, err := j.app(ctx, name)
	if errors.Is(err, serving.ErrUnknownApp) {
		it.rejection = unknownApp(name)
		return nil
	}
	if err != nil {
		return err
	}
	input, err := it.request.Input(app.InputType)
	if err != nil {
		it.rejection = rejected(WrongInput, "%v", err)
		return nil
	}
	it.objective = app.SLO.Std()
	it.query = serving.Query{
		App: name, Input: input, User: it.request.User, Context: it.request.Context,
		Affinity: j.spreader.affinity(it.record, &it.request),
	}
	return nil
}

func unknownApp(name string) *rejection {
	return rejected(UnknownApp, "there is no app %q: register it, and send the record again", name)
}

// appOf is the app that a record is for.
func (j *Job) appOf(it *item) (name string, why *rejection) {
	said := it.request.App
	if said == "" {
		said = deadletter.Header(it.record, HeaderApp)
	}
	switch app, known := j.cfg.Apps[said]; {
	case known:
		return app, nil
	case said == "" && j.cfg.App == "":
		return "", rejected(UnknownApp, "the record names no app, and the job has none for such records: set app in the message, or the header %s", HeaderApp)
	case said == "" || said == j.cfg.App:
		return j.cfg.App, nil
	}
	return "", rejected(UnknownApp, "the record names the app %.100q, which is none of the job's", said)
}

// app finds an app. It waits while none is known, and for the job's own: all records
// would be dead letters without it.
func (j *Job) app(ctx context.Context, name string) (*serving.App, error) {
	pause := loop.Pause{}
	for ctx.Err() == nil {
		app, err := j.cfg.Scorer.App(name)
		if err == nil {
			j.conditions.End(predicting(name))
			return app, nil
		}
		if errors.Is(err, serving.ErrUnknownApp) && name != j.cfg.App {
			return nil, err
		}
		j.conditions.Begin(predicting(name), err)
		pause.Wait(ctx)
	}
	return nil, context.Cause(ctx)
}

// predict has all records predicted: those of each app side by side, and apps independently
// of each other. It fails only when ctx ends.
func (b *batch) predict(ctx context.Context) error {
	apps := map[string][]*item{}
	for i := range b.items {
		if it := &b.items[i]; it.rejection == nil {
			apps[it.query.App] = append(apps[it.query.App], it)
		}
	}
	var asking sync.WaitGroup
	for app, items := range apps {
		lane := b.job.lane(app)
		asking.Go(func() { lane.predict(ctx, items) })
	}
	asking.Wait()
	return context.Cause(ctx)
}

// take takes what a record was answered, and says whether that was the last word.
func (j *Job) take(it *item, q *serving.Query, p serving.Prediction, err error) (done bool) {
	if err == nil {
		it.prediction = p
		return q.Counts(&p)
	}
	refused, isRefused := errors.AsType[*serving.QueryError](err)
	switch {
	case isRefused:
		it.rejection = rejected(WrongInput, "%s", refused.Cause)
		return true
	case errors.Is(err, serving.ErrUnknownApp) && it.query.App != j.cfg.App:
		it.rejection = unknownApp(it.query.App)
		return true
	}
	return false // the catalog is away, or it is deleted and may come back
}

func (b *batch) refuseDefaults() {
	for i := range b.items {
		it := &b.items[i]
		if p := &it.prediction; b.job.cfg.NoDefaults && p.Default && it.rejection == nil {
			it.rejection = rejected(GaveDefault, "the answer was the default: %s", p.Explanation)
		}
	}
}

// Shorten makes a result a dead letter, and one of these shorter.
func (b *batch) Shorten(record int, why error) bool {
	it := &b.items[record]
	if it.rejection == nil {
		it.rejection = rejected(ResultTooLarge, "the result is too large for its stream: %v", why)
		return true
	}
	return it.length.Shorten()
}

// Message is a result, or a dead letter.
func (b *batch) Message(record int) serving.StreamMessage {
	it := &b.items[record]
	if it.rejection != nil {
		return b.job.deadLetters.Message(it.record, it.rejection.why(), it.length)
	}
	return it.result(b.job.cfg.Output)
}

// result is the message of a prediction.
func (it *item) result(to string) serving.StreamMessage {
	response := newResponse(it.request.UUID, &it.prediction)
	return serving.StreamMessage{
		Stream: to, Key: it.record.Key, Value: response.append(nil, it.request.Format),
		Headers: []serving.StreamHeader{{Name: HeaderContentType, Value: []byte(it.request.Format.ContentType())}},
	}
}

// Done counts what was committed, and remembers the ids.
func (b *batch) Done() {
	now, j := time.Now(), b.job
	j.metrics.batch.Observe(float64(len(b.items)))
	tally := Tally{Records: uint64(len(b.items))}
	for i := range b.items {
		it := &b.items[i]
		j.metrics.age.Observe(max(now.Sub(it.record.At), 0).Seconds())
		if it.redelivered {
			tally.Redelivered++
			j.metrics.redelivered.Inc()
		}
		switch {
		case it.rejection != nil:
			tally.DeadLetters++
			j.metrics.dead.Inc()
			j.metrics.reasons[it.rejection.reason].Inc()
			j.conditions.Note("dead letter: " + it.rejection.text)
			continue
		case it.prediction.Default:
			tally.Defaults++
			j.metrics.defaults.Inc()
		default:
			j.metrics.predicted.Inc()
		}
		tally.Results++
		j.recent.Add(it.request.UUID, deadletter.Place(it.record))
	}
	last := b.items[len(b.items)-1].record
	j.counts.commit(tally, deadletter.Place(last), now)
}
