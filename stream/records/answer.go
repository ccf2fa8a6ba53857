package records

import (
	"errors"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// answer is what one app gives for a record.
type answer struct {
	record     *record
	app        string
	query      serving.Query
	objective  time.Duration // of the app
	prediction serving.Prediction
	took       time.Duration // from asking the first time
	result     *stream.Result
}

// prepare makes the query, or rejects the record.
func (a *answer) prepare(app *serving.App) bool {
	input, err := a.input(app)
	if err != nil {
		a.reject(stream.Rejected(WrongInput, "%v", err))
		return false
	}
	r := a.record
	a.objective = app.SLO.Std()
	a.query = serving.Query{
		App: a.app, Priority: r.handler.cfg.priority(app), Input: input, User: r.request.User, Context: r.request.Context, Affinity: r.affinity,
	}
	return true
}

// input is the input of the query, as the app takes it.
func (a *answer) input(app *serving.App) (serving.Input, error) {
	if read := a.record.read; read != nil {
		return read.Input(app.InputType, app.Signature.InputTensors())
	}
	return a.record.request.InputOf(app)
}

// reject makes the record a dead letter. Of several apps it is one for this app.
func (a *answer) reject(why *stream.Rejection) {
	a.result.Rejection = why
	if len(a.record.answers) > 1 {
		a.result.Headers = []serving.StreamHeader{{Name: HeaderApp, Value: []byte(a.app)}}
	}
}

// take takes what the app answered, and says whether that was the last word.
func (a *answer) take(asked *serving.Query, p serving.Prediction, err error) (done bool) {
	if err == nil {
		a.prediction = p
		return a.settle(asked.Counts(&p))
	}
	refused, isRefused := errors.AsType[*serving.QueryError](err)
	switch {
	case isRefused:
		a.reject(stream.Rejected(WrongInput, "%s", refused.Cause))
		return true
	case errors.Is(err, serving.ErrUnknownApp) && !a.record.handler.isOwn(a.app):
		a.reject(unknownApp(a.app))
		return true
	}
	return false // the catalog is unavailable, or the app is deleted and may come back
}

// settle says what the prediction comes to, if it is the last word.
func (a *answer) settle(last bool) bool {
	if !last {
		return false
	}
	h := a.record.handler
	h.mix.add(a.app)
	a.result.Outcome = predicted
	if a.prediction.Default {
		a.result.Outcome = gaveDefault
	}
	switch defaults := h.cfg.Defaults; {
	case a.prediction.Default && defaults == DefaultsDeadLetter:
		a.reject(stream.Rejected(GaveDefault, "the answer was the default: %s", a.prediction.Explanation))
	case a.prediction.Default && defaults == DefaultsDrop:
		a.drop()
	default:
		a.finish()
	}
	return true
}

// finish says where the result goes, and writes it.
func (a *answer) finish() {
	r := a.record
	to, drop := r.handler.cfg.route(a.app, &a.prediction)
	if drop {
		a.drop()
		return
	}
	a.result.Stream, a.result.Headers = to, stream.Carried(r.Headers)
	value, err := a.write(to)
	if err != nil {
		a.result.Headers = nil
		a.reject(stream.Rejected(UnfitResult, "the result cannot be written: %v", err))
		return
	}
	a.result.Value = value
}

// drop leaves the record without a result of this app.
func (a *answer) drop() { a.result.Outcome, a.result.Drop = dropped, true }

// write is the value of the result.
func (a *answer) write(to string) ([]byte, error) {
	r := a.record
	response := newResponse(r.request.UUID, a.app, &a.prediction, a.took)
	if r.read == nil {
		return response.append(nil, r.request.Format), nil
	}
	writer := r.handler.topic.writer
	a.result.ContentType = writer.ContentType()
	if writer.Own() {
		return response.AppendProtobuf(nil), nil
	}
	return writer.Write(to, r.read, response.AppendJSON(nil), response.Output)
}
