package codec

import (
	"bytes"

	"github.com/topsail-serving/topsail/serving"
)

// PredictRequest is the body of a predict request. It owns its memory.
type PredictRequest struct {
	Input   serving.Input   // of a request for one prediction
	Batch   []serving.Input // of a request for a batch, possibly of none; else nil
	Options Options
}

// Most is how many bytes the inputs of a body have at most, once they are decoded. To know it
// takes little of the time that decoding does.
func Most(body []byte, t serving.InputType) int {
	if t == serving.Bytes || t == serving.Strings {
		return len(body)
	}
	return min(bytes.Count(body, []byte{','})+1, len(body)/2+1) * t.DType().Size()
}

// DecodePredict reads the body of a request to an app that takes inputs of type
// t. A batch has at most maxBatch inputs. Its error is always an *Error.
func DecodePredict(body []byte, t serving.InputType, maxBatch int) (PredictRequest, error) {
	d := decoder{parser: parser{b: body}, inputType: t, maxBatch: maxBatch, batchAt: -1}
	err := d.body()
	if err == nil {
		return d.out, nil
	}
	return PredictRequest{}, refused(body, err)
}

// decoder reads one predict request.
type decoder struct {
	parser
	inputType serving.InputType
	maxBatch  int
	seen      field // keys met so far: the first of equal keys counts
	batchAt   int   // offset of the value of "input_batch", or -1
	out       PredictRequest
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
)

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
	switch {
	case d.seen&fieldInput != 0:
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
		if err := d.member(fieldOf(key)); err != nil {
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
	options := &d.out.Options
	switch f {
	case fieldInput:
		d.out.Input, err = d.input(d.inputType)
	case fieldBatch:
		d.peek()
		d.batchAt = d.i // "input" may still come, and wins
		err = d.skip(1)
	case fieldVersion:
		options.Version, err = d.version()
	case fieldUID:
		options.User, err = d.name()
	case fieldSLO:
		options.Timeout, err = d.slo()
	case fieldSalt:
		options.Salt, err = d.name()
	case fieldNoCache:
		options.NoCache, err = d.flag()
	case fieldContext:
		options.Context, err = d.name()
	case fieldExplain:
		options.Explain, err = d.flag()
	}
	return err
}

// lateBatch reads the batch when it is certain that there is no "input".
func (d *decoder) lateBatch() (err error) {
	d.i = d.batchAt
	d.out.Batch, err = d.batch(d.inputType, d.maxBatch)
	return err
}
