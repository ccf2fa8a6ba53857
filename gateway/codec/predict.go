package codec

import (
	"bytes"

	"github.com/topsail-serving/topsail/serving"
)

// PredictRequest is the body of a predict request. It owns its memory.
type PredictRequest struct {
	serving.Query                 // as far as the body says it; of a batch, what its queries share
	Batch         []serving.Input // of a request for a batch, possibly of none; else nil
}

// Queries are those of the request: one for each input of a batch. The first one has its timing filled in; nil: none has.
func (p *PredictRequest) Queries(timing *serving.Timing) []serving.Query {
	qs := []serving.Query{p.Query}
	if p.Batch != nil {
		qs = make([]serving.Query, len(p.Batch))
		for i, input := range p.Batch {
			qs[i] = p.Query
			qs[i].Input = input
		}
	}
	if len(qs) > 0 {
		qs[0].Timing = timing
	}
	return qs
}

// Most is how many bytes the inputs of a body have at most, once they are decoded. To know it
// takes little of the time that decoding does.
func Most(body []byte, app *serving.App) int {
	size := app.InputType.DType().Size()
	switch app.InputType {
	case serving.Bytes, serving.Strings, serving.Chat:
		return len(body)
	case serving.Tensors:
		size = 4 // the length of a string, which has its bytes in the body
		for _, t := range app.Signature.InputTensors() {
			size = max(size, serving.DType(t.Type).Size())
		}
		return len(body) + min(bytes.Count(body, []byte{','})+1, len(body)/2+1)*size
	}
	return min(bytes.Count(body, []byte{','})+1, len(body)/2+1) * size
}

// DecodePredict reads the body of a request to an app. A batch has at most maxBatch inputs. Its
// error is always an *Error.
func DecodePredict(body []byte, app *serving.App, maxBatch int) (PredictRequest, error) {
	body = withoutMark(body)
	d := decoder{parser: parser{b: body}, app: app, maxBatch: maxBatch, batchAt: -1}
	err := d.body()
	if err == nil {
		return d.out, nil
	}
	return PredictRequest{}, refused(body, err)
}

// decoder reads one predict request.
type decoder struct {
	parser
	strictness
	app      *serving.App
	maxBatch int
	seen     field // keys met so far: the first of equal keys counts
	batchAt  int   // offset of the value of "input_batch", or -1
	out      PredictRequest
}

// field is a bit for each key that has a meaning.
type field uint16

const (
	fieldInput field = 1 << iota
	fieldBatch
	fieldVersion
	fieldUID
	fieldSLO
	fieldSalt
	fieldNoCache
	fieldContext
	fieldExplain
	fieldInputs
	fieldCandidates
	fieldStrict
	fieldPriority
)

// QueryMembers are the keys with a meaning.
func QueryMembers() []string {
	return []string{"input", "input_batch", "inputs", "version", "uid", "slo_micros", "salt", "no_cache", "context", "explain", "candidate_models", "strict", "priority"}
}

func fieldOf(key []byte) field {
	switch string(key) {
	case "input":
		return fieldInput
	case "input_batch":
		return fieldBatch
	case "version":
		return fieldVersion
	case "uid":
		return fieldUID
	case "slo_micros":
		return fieldSLO
	case "salt":
		return fieldSalt
	case "no_cache":
		return fieldNoCache
	case "context":
		return fieldContext
	case "explain":
		return fieldExplain
	case "inputs":
		return fieldInputs
	case "candidate_models":
		return fieldCandidates
	case "strict":
		return fieldStrict
	case "priority":
		return fieldPriority
	}
	return 0
}

// body reads the whole body into d.out.
func (d *decoder) body() error {
	if d.peek() != '{' {
		return d.mustBe(`an object, such as {"input": [1.5, 2]}`)
	}
	d.i++
	if err := d.members(); err != nil {
		return err
	}
	if err := d.end(); err != nil {
		return err
	}
	if err := d.refusal(); err != nil {
		return err
	}
	switch {
	case d.seen&fieldInput != 0 && d.seen&fieldInputs != 0:
		return contentError(0, "has input and inputs: give one of them")
	case d.seen&(fieldInput|fieldInputs) != 0:
		return nil
	case d.seen&fieldBatch != 0:
		return d.lateBatch()
	}
	return contentError(0, `needs the key "input", or "input_batch" for several inputs`)
}

func (d *decoder) members() error {
	if d.take('}') {
		return nil
	}
	for {
		key, err := d.key()
		if err != nil {
			return err
		}
		f := fieldOf(key)
		if f == 0 {
			d.peek()
			d.meets(key, d.i, QueryMembers)
		}
		if err := d.member(f); err != nil {
			return err
		}
		if more, err := d.moreMembers(); !more {
			return err
		}
	}
}

// member reads the value of one key.
func (d *decoder) member(f field) (err error) {
	if f == 0 || d.seen&f != 0 {
		return d.skip(1)
	}
	d.seen |= f
	switch f {
	case fieldInput:
		d.out.Input, err = d.input(d.app)
	case fieldBatch:
		d.peek()
		d.batchAt = d.i // "input" may still come, and wins
		err = d.skip(1)
	case fieldVersion:
		d.out.Version, err = d.version()
	case fieldUID:
		d.out.User, err = d.name()
	case fieldSLO:
		d.out.Timeout, err = d.slo()
	case fieldSalt:
		d.out.Salt, err = d.name()
	case fieldNoCache:
		d.out.NoCache, err = d.flag()
	case fieldContext:
		d.out.Context, err = d.name()
	case fieldExplain:
		d.out.Explain, err = d.flag()
	case fieldInputs:
		d.out.Input, err = d.named(d.app)
	case fieldCandidates:
		d.out.Candidates, err = d.candidates()
	case fieldStrict:
		err = d.strict(&d.parser)
	case fieldPriority:
		d.out.Priority, err = d.priority()
	}
	return err
}

// lateBatch reads the batch when it is certain that there is no "input".
func (d *decoder) lateBatch() (err error) {
	d.i = d.batchAt
	d.out.Batch, err = d.batch(d.app, d.maxBatch)
	return err
}
