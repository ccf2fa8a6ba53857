package codec

import (
	"bytes"
	"cmp"
	"encoding/base64"

	"github.com/topsail-serving/topsail/serving"
)

// input reads the input at i, the whole value of "input", for an app.
func (p *parser) input(app *serving.App) (serving.Input, error) {
	t := app.InputType
	if t == serving.Tensors {
		return p.tensors(app.Signature.InputTensors())
	}
	var data []byte
	var err error
	switch kind := p.kind(); {
	case t == serving.Chat:
		data, err = p.object()
	case t == serving.Strings || t == serving.Bytes:
		if kind != "String" {
			return serving.Input{}, p.mustBe(inputName(t))
		}
		data, err = p.stringInput(t)
	case kind != "Array":
		return serving.Input{}, p.mustBe(inputName(t))
	default:
		data, err = p.vector(t)
	}
	return serving.Input{Type: t, Data: data}, err
}

// batch reads the inputs at i, the whole value of "input_batch".
func (p *parser) batch(app *serving.App, maxBatch int) ([]serving.Input, error) {
	if p.kind() != "Array" {
		return nil, p.mustBe("an array of inputs")
	}
	first := p.i
	p.i++
	inputs := []serving.Input{}
	if p.take(']') {
		return inputs, nil
	}
	for {
		if len(inputs) == maxBatch {
			return nil, contentError(first, "has more than %d inputs: send them in several requests", maxBatch)
		}
		in, err := p.input(app)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
		if more, err := p.moreElements(); !more {
			return inputs, err
		}
	}
}

// named reads the object at i, the whole value of "inputs": the inputs of a signature, or the one
// input of an app without.
func (p *parser) named(app *serving.App) (in serving.Input, err error) {
	if app.InputType == serving.Tensors {
		return p.tensors(app.Signature.InputTensors())
	}
	const only = `an object with "input", the one input of the app`
	if p.kind() != "Object" {
		return in, p.mustBe(only)
	}
	first := p.i
	p.i++
	if p.take('}') {
		return in, contentError(first, "must be "+only)
	}
	key, err := p.key()
	if err != nil {
		return in, err
	}
	if string(key) != "input" {
		return in, contentError(first, "has %.*q, and must be "+only, longestName, key)
	}
	if in, err = p.input(app); err != nil {
		return in, err
	}
	if more, err := p.moreMembers(); more || err != nil {
		return in, cmp.Or(err, contentError(first, "must be "+only+" and no other"))
	}
	return in, nil
}

// object reads the object at i as it is written.
func (p *parser) object() ([]byte, error) {
	if p.kind() != "Object" {
		return nil, p.mustBe(inputName(serving.Chat))
	}
	first := p.i
	if err := p.skip(0); err != nil {
		return nil, err
	}
	return bytes.Clone(p.b[first:p.i]), nil
}

// stringInput reads the data of an input that is a JSON string.
func (p *parser) stringInput(t serving.InputType) ([]byte, error) {
	first := p.i
	s, err := p.text()
	if err != nil {
		return nil, err
	}
	if t == serving.Strings {
		return s.bytes(), nil
	}
	data, err := s.decode(first)
	if err == nil && len(data) == 0 { // nothing, or nothing but the line breaks that Decode skips
		return nil, contentError(first, "is empty: give at least one byte, in base64")
	}
	return data, err
}

// decode decodes the text at an offset, in base64 that may lack its padding.
func (t text) decode(at int) ([]byte, error) {
	encoded := t.raw
	if t.escaped { // some writers escape every slash
		encoded = t.unescape()
	}
	encoding := base64.RawStdEncoding
	if bytes.IndexByte(encoded, '=') >= 0 {
		encoding = base64.StdEncoding
	}
	data := make([]byte, encoding.DecodedLen(len(encoded)))
	n, err := encoding.Decode(data, encoded)
	if err != nil {
		return nil, contentError(at, "is not base64: use the standard alphabet (A-Z a-z 0-9 + /), with or without padding")
	}
	return data[:n], nil
}

// vector reads the array of numbers at i.
func (p *parser) vector(t serving.InputType) ([]byte, error) {
	data, first := make([]byte, 0, p.countElements()*t.DType().Size()), p.i
	p.i++
	if p.take(']') {
		return nil, contentError(first, "is empty: give at least one number")
	}
	for {
		c := p.peek()
		at := p.i
		var n number
		var err error
		switch {
		case c == '-' || isDigit(c):
			n, err = p.number()
		case c == 't' || c == 'f': // what one-hot columns are in many libraries
			n, err = p.truth()
		default:
			return nil, p.mustBe("a number")
		}
		if err != nil {
			return nil, err
		}
		if data, err = n.append(data, t.DType(), p.b[at:p.i], at); err != nil {
			return nil, err
		}
		if more, err := p.moreElements(); !more {
			return data, err
		}
	}
}

// truth reads true or false at i as 1 or 0.
func (p *parser) truth() (number, error) {
	n := number{}
	if p.b[p.i] == 't' {
		n.mantissa = 1
	}
	return n, p.skip(0)
}

// countElements says how many elements the flat array at i has, if it is one. An
// element and its comma take two bytes at least, and so no body can ask for
// memory out of proportion to its length.
func (p *parser) countElements() int {
	array := p.b[p.i:]
	if end := bytes.IndexByte(array, ']'); end >= 0 {
		array = array[:end]
	}
	return min(bytes.Count(array, []byte{','})+1, len(array)/2+1)
}
