package records

import (
	"context"
	"errors"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/mapping"
)

// HeaderApp is the header by which a record says who is asked, where the job lets it.
const HeaderApp = "topsail-app"

// record is one on its way to its prediction.
type record struct {
	*serving.StreamRecord
	handler    *handler
	request    Request
	read       *mapping.Record // of a topic; nil: the request is the message
	query      serving.Query
	objective  time.Duration // of the app
	prediction serving.Prediction
	output     stream.Output
	result     []byte
}

// of is the record of an item, which the handler made.
func of(it *stream.Item) *record { return it.Message.(*record) }

// ID implements stream.Message. To send an input twice is a mistake.
func (r *record) ID() (id, checksum string) { return r.request.UUID, "" }

// Prepare makes the query of a record. It waits for the app if that is the job's own.
func (r *record) Prepare(ctx context.Context) error {
	name, err := r.app()
	if err != nil {
		return err
	}
	app, err := r.handler.app(ctx, name)
	if err != nil {
		return err
	}
	input, err := r.input(app)
	if err != nil {
		return stream.Rejected(WrongInput, "%v", err)
	}
	r.objective = app.SLO.Std()
	r.query = serving.Query{
		App: name, Priority: r.handler.cfg.priority(app), Input: input, User: r.request.User, Context: r.request.Context,
		Affinity: r.handler.spreader.affinity(r.StreamRecord, &r.request),
	}
	return nil
}

// priority is that of queries to an app: by default one below it, so that no client waits for a stream.
func (c *Config) priority(app *serving.App) int {
	if c.Priority != nil {
		return *c.Priority
	}
	return min(app.Priority+1, serving.LowestPriority)
}

// app is the name of the app that a record is for.
func (r *record) app() (name string, err error) {
	said, cfg := r.request.App, &r.handler.cfg
	if said == "" {
		said = r.Header(HeaderApp)
	}
	switch app, known := r.handler.named(said); {
	case known:
		return app, nil
	case said == "" && cfg.App == "":
		return "", stream.Rejected(UnknownApp, "the record names no app, and the job has none for such records: set app in the message, or the header %s", HeaderApp)
	case said == "" || said == cfg.App:
		return cfg.App, nil
	}
	return "", stream.Rejected(UnknownApp, "the record names the app %.100q, which is none of the job's", said)
}

// take takes what a record was answered, and says whether that was the last word.
func (r *record) take(it *stream.Item, asked *serving.Query, p serving.Prediction, err error) (done bool) {
	if err == nil {
		r.prediction = p
		return r.settle(it, asked.Counts(&p))
	}
	refused, isRefused := errors.AsType[*serving.QueryError](err)
	switch {
	case isRefused:
		it.Rejection = stream.Rejected(WrongInput, "%s", refused.Cause)
		return true
	case errors.Is(err, serving.ErrUnknownApp) && r.query.App != r.handler.cfg.App:
		it.Rejection = unknownApp(r.query.App)
		return true
	}
	return false // the catalog is unavailable, or the app is deleted and may come back
}

// settle says what the prediction comes to, if it is the last word.
func (r *record) settle(it *stream.Item, last bool) bool {
	if last {
		r.handler.mix.add(r.query.App)
	}
	it.Outcome = predicted
	if r.prediction.Default {
		it.Outcome = gaveDefault
	}
	switch defaults := r.handler.cfg.Defaults; {
	case !last:
	case r.prediction.Default && defaults == DefaultsDeadLetter:
		it.Rejection = stream.Rejected(GaveDefault, "the answer was the default: %s", r.prediction.Explanation)
	case r.prediction.Default && defaults == DefaultsDrop:
		r.drop(it)
	default:
		r.finish(it)
	}
	return last
}
