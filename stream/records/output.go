package records

import (
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// input is the input of the record's query, as the app takes it.
func (r *record) input(app *serving.App) (serving.Input, error) {
	if r.read != nil {
		return r.read.Input(app.InputType, app.Signature.InputTensors())
	}
	return r.request.InputOf(app)
}

// finish says where the result of the record goes, and writes it.
func (r *record) finish(it *stream.Item) {
	to, drop := r.handler.cfg.route(r.query.App, &r.prediction)
	if drop {
		r.drop(it)
		return
	}
	r.output = stream.Output{Stream: to, Headers: stream.Carried(r.Headers)}
	value, err := r.write(to)
	if err != nil {
		it.Rejection = stream.Rejected(UnfitResult, "the result cannot be written: %v", err)
		return
	}
	r.result = value
}

// drop leaves the record without a result.
func (r *record) drop(it *stream.Item) {
	it.Outcome = dropped
	r.output = stream.Output{Drop: true}
}

// write is the value of the result.
func (r *record) write(to string) ([]byte, error) {
	response := newResponse(r.request.UUID, &r.prediction)
	if r.read == nil {
		return response.append(nil, r.request.Format), nil
	}
	writer := r.handler.topic.writer
	r.output.ContentType = writer.ContentType()
	if writer.Own() {
		return response.AppendProtobuf(nil), nil
	}
	return writer.Write(to, r.read, response.AppendJSON(nil), response.Output)
}

// Output implements stream.Directed.
func (r *record) Output() stream.Output { return r.output }

// Result implements stream.Message.
func (r *record) Result() []byte { return r.result }

var _ stream.Directed = (*record)(nil)
