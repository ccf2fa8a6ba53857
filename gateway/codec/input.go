package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"

	"github.com/topsail-serving/topsail/serving"
)

// input reads the input at i, the whole value of "input".
func (p *parser) input(t serving.InputType) (serving.Input, error) {
	var data []byte
	var err error
	switch kind := p.kind(); {
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
func (p *parser) batch(t serving.InputType, maxBatch int) ([]serving.Input, error) {
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
		in, err := p.input(t)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
		if more, err := p.moreElements(); !more {
			return inputs, err
		}
	}
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
	return s.base64(first)
}

// base64 decodes the text at an offset, which may lack its padding.
func (t text) base64(at int) ([]byte, error) {
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
	switch {
	case err != nil:
		return nil, contentError(at, "is not base64: use the standard alphabet (A-Z a-z 0-9 + /), with or without padding")
	case n == 0: // nothing, or nothing but the line breaks that Decode skips
		return nil, contentError(at, "is empty: give at least one byte, in base64")
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
		var err error
		if data, err = p.appendElement(data, t); err != nil {
			return nil, err
		}
		if more, err := p.moreElements(); !more {
			return data, err
		}
	}
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

// appendElement reads one number and appends it in little-endian order.
func (p *parser) appendElement(data []byte, t serving.InputType) ([]byte, error) {
	if c := p.peek(); c != '-' && !isDigit(c) {
		return nil, p.mustBe("a number")
	}
	first := p.i
	n, err := p.number()
	if err != nil {
		return nil, err
	}
	switch t {
	case serving.Ints:
		x, ok := n.int32()
		if !ok {
			return nil, contentError(first, "must be a whole number between -2147483648 and 2147483647, without point or exponent")
		}
		return binary.LittleEndian.AppendUint32(data, uint32(x)), nil
	case serving.Floats:
		x, ok := n.as32(p.b[first:p.i])
		if !ok {
			return nil, contentError(first, "must be between -3.4028235e38 and 3.4028235e38")
		}
		return binary.LittleEndian.AppendUint32(data, math.Float32bits(x)), nil
	}
	x, ok := n.as64(p.b[first:p.i])
	if !ok {
		return nil, contentError(first, "is too large for a double")
	}
	return binary.LittleEndian.AppendUint64(data, math.Float64bits(x)), nil
}
