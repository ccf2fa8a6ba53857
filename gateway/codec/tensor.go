package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// tensors reads the object at i, whose members are the inputs of a signature, as one input.
func (p *parser) tensors(inputs []serving.Tensor) (serving.Input, error) {
	if p.kind() != "Object" {
		return serving.Input{}, p.mustBe("an object with " + quotedNames(inputs))
	}
	first, size := p.i, 2
	p.i++
	values := make([]serving.Value, len(inputs))
	if !p.take('}') {
		for {
			p.peek()
			at := p.i
			key, err := p.key()
			if err != nil {
				return serving.Input{}, err
			}
			i := serving.Index(inputs, string(key))
			switch {
			case i < 0:
				return serving.Input{}, contentError(first, "has %.*q, and must have %s", longestName, key, quotedNames(inputs))
			case values[i].DType != 0:
				return serving.Input{}, contentError(at, "comes twice")
			}
			if values[i], err = p.tensor(&inputs[i]); err != nil {
				return serving.Input{}, err
			}
			size += rpc.ValueSize(&values[i])
			if more, err := p.moreMembers(); err != nil {
				return serving.Input{}, err
			} else if !more {
				break
			}
		}
	}
	for i := range values {
		if values[i].DType == 0 {
			return serving.Input{}, contentError(first, "lacks %q, which is %s", inputs[i].Name, inputs[i])
		}
	}
	return serving.Input{Type: serving.Tensors, Data: rpc.AppendPayload(make([]byte, 0, size), values...)}, nil
}

func quotedNames(inputs []serving.Tensor) (list string) {
	for i, t := range inputs {
		if i > 0 {
			list += ", "
		}
		list += fmt.Sprintf("%q", t.Name)
	}
	return list
}

// tensor reads the value at i: arrays, nested as the shape says.
func (p *parser) tensor(t *serving.Tensor) (serving.Value, error) {
	v := serving.Value{Name: t.Name, DType: serving.DType(t.Type)}
	if len(t.Shape) > 0 {
		v.Shape = slices.Clone(t.Shape) // -1: not met yet
		v.Data = make([]byte, 0, p.countElements()*max(v.DType.Size(), 4))
	}
	err := p.nested(t, &v, 0)
	for i, d := range v.Shape {
		v.Shape[i] = max(d, 0) // below an array without elements
	}
	return v, err
}

// nested reads what is at i, depth arrays deep in v.
func (p *parser) nested(t *serving.Tensor, v *serving.Value, depth int) (err error) {
	if depth == len(v.Shape) {
		v.Data, err = p.appendElement(v.Data, v.DType, depth > 0)
		return err
	}
	if p.kind() != "Array" {
		return p.mustBe(fmt.Sprintf("an array, for %q is %s", t.Name, t))
	}
	first, n := p.i, 0
	p.i++
	for more := !p.take(']'); more; n++ {
		if v.Shape[depth] == n {
			return p.wrongLength(t, v, depth, first)
		}
		if err := p.nested(t, v, depth+1); err != nil {
			return err
		}
		if more, err = p.moreElements(); err != nil {
			return err
		}
	}
	if v.Shape[depth] >= 0 && n != v.Shape[depth] {
		return p.wrongLength(t, v, depth, first)
	}
	v.Shape[depth] = n
	return nil
}

// wrongLength is for the array at an offset, which has fewer or more elements than it must.
func (p *parser) wrongLength(t *serving.Tensor, v *serving.Value, depth, at int) error {
	if t.Shape[depth] < 0 {
		return contentError(at, "has another length than the arrays before it, which have %d elements: %q is %s", v.Shape[depth], t.Name, t)
	}
	return contentError(at, "must have %d elements: %q is %s", v.Shape[depth], t.Name, t)
}

// appendElement reads one element and appends it as the wire has it, in an array or alone.
func (p *parser) appendElement(data []byte, t serving.DType, array bool) ([]byte, error) {
	first := p.i
	switch t {
	case serving.Bool:
		on, err := p.flag()
		if err != nil || !on {
			return append(data, 0), err
		}
		return append(data, 1), nil
	case serving.String, serving.Blob:
		if p.kind() != "String" {
			return nil, p.mustBe(map[bool]string{true: "a string", false: "a string of bytes in base64"}[t == serving.String])
		}
		text, err := p.text()
		if err != nil {
			return nil, err
		}
		element := text.bytes()
		if t == serving.Blob {
			if element, err = text.decode(first); err != nil {
				return nil, err
			}
		}
		if array {
			return serving.AppendElement(data, element), nil
		}
		return element, nil
	case serving.JSON:
		p.peek()
		first = p.i
		if err := p.skip(2); err != nil {
			return nil, err
		}
		return slices.Clone(p.b[first:p.i]), nil
	}
	if c := p.peek(); c != '-' && !isDigit(c) {
		return nil, p.mustBe("a number")
	}
	first = p.i
	n, err := p.number()
	if err != nil {
		return nil, err
	}
	return n.append(data, t, p.b[first:p.i], first)
}

// append appends the number, which text is and which is at an offset, as an element.
func (n number) append(data []byte, t serving.DType, text []byte, at int) ([]byte, error) {
	le := binary.LittleEndian
	switch t {
	case serving.Int32:
		x, ok := n.int32()
		if !ok {
			return nil, contentError(at, "must be a whole number between -2147483648 and 2147483647, without point or exponent")
		}
		return le.AppendUint32(data, uint32(x)), nil
	case serving.Float32, serving.Float16, serving.BFloat16:
		x, ok := n.as32(text)
		if !ok {
			return nil, contentError(at, "must be between -3.4028235e38 and 3.4028235e38")
		}
		switch t {
		case serving.Float16:
			if half := serving.ToHalf(x); half&0x7fff != 0x7c00 {
				return le.AppendUint16(data, half), nil
			}
			return nil, contentError(at, "must be between -65504 and 65504")
		case serving.BFloat16:
			if brain := serving.ToBrainFloat(x); brain&0x7fff != 0x7f80 {
				return le.AppendUint16(data, brain), nil
			}
			return nil, contentError(at, "must be between -3.39e38 and 3.39e38")
		}
		return le.AppendUint32(data, math.Float32bits(x)), nil
	case serving.Float64:
		x, ok := n.as64(text)
		if !ok {
			return nil, contentError(at, "is too large for a double")
		}
		return le.AppendUint64(data, math.Float64bits(x)), nil
	}
	return n.appendWhole(data, t, text, at)
}

// appendWhole appends the number as one of a whole type.
func (n number) appendWhole(data []byte, t serving.DType, text []byte, at int) ([]byte, error) {
	bits := 8 * t.Size()
	var x uint64
	var err error
	if signed := t == serving.Int8 || t == serving.Int16 || t == serving.Int64; signed {
		var s int64
		s, err = strconv.ParseInt(string(text), 10, bits)
		x = uint64(s)
	} else {
		x, err = strconv.ParseUint(string(text), 10, bits)
		if n.negative && n.form == whole && n.mantissa == 0 {
			err = nil // -0
		}
	}
	if err != nil {
		return nil, contentError(at, "must be a whole number that %v holds, without point or exponent", t)
	}
	return binary.LittleEndian.AppendUint64(data, x)[:len(data)+t.Size()], nil
}
