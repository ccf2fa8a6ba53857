package records

import (
	"fmt"
	"math"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// Response is the result of a record.
type Response struct {
	UUID        string
	QueryID     int64
	Output      []byte // JSON
	Outputs     []byte // all outputs of a model that names them, as a JSON object; else empty
	Default     bool
	Explanation string        // why it is the default
	App         string        // that was asked
	Took        time.Duration // from asking it the first time to the answer, in microseconds
	Model       string        // who gave the output; empty where several did, or none
	Version     string
	Confidence  *float64    // nil: the model does not say
	Qualifiers  []Qualifier // in the order of the model
	Missing     []string    // models that are not in the answer, as model:version
}

// Qualifier is a named value beside an output: the text of a text, else JSON.
type Qualifier struct{ Key, Value string }

// ParseResponse reads a message that a job produced, for programs that read results. It
// points into the message.
func ParseResponse(message []byte, format stream.Format) (Response, error) {
	var r Response
	var err error
	if format == stream.JSON {
		err = r.parseJSON(message)
	} else {
		err = r.parseProtobuf(message)
	}
	if err != nil {
		return Response{}, fmt.Errorf("the message is no %v response: %w", format, err)
	}
	return r, nil
}

// newResponse is what an app gave for the record of this id, and in what time.
func newResponse(uuid, app string, p *serving.Prediction, took time.Duration) Response {
	r := Response{
		UUID: uuid, QueryID: p.QueryID, Output: p.Output, Default: p.Default, Explanation: p.Explanation, App: app, Took: took,
		Model: p.Model.Model, Version: p.Model.Version,
	}
	if p.Full != nil {
		r.Outputs = p.Full.NamedJSON
	}
	if c := p.Confidence; c != nil && !math.IsNaN(*c) && !math.IsInf(*c, 0) {
		r.Confidence = c
	}
	for _, v := range p.Qualifiers {
		r.Qualifiers = append(r.Qualifiers, newQualifier(v))
	}
	for _, id := range p.Missing {
		r.Missing = append(r.Missing, id.String())
	}
	return r
}

// newQualifier is a value as text. One that JSON cannot carry is null.
func newQualifier(v serving.Value) Qualifier {
	if v.DType == serving.String {
		return Qualifier{v.Name, string(v.Data)}
	}
	text, err := serving.AppendJSON(nil, v)
	if err != nil {
		text = []byte("null")
	}
	return Qualifier{v.Name, string(text)}
}

// append appends the response in a format.
func (r *Response) append(b []byte, format stream.Format) []byte {
	if format == stream.JSON {
		return r.AppendJSON(b)
	}
	return r.AppendProtobuf(b)
}
