package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// inferInput is an input while it is read.
type inferInput struct {
	value    serving.Value
	datatype string
	shaped   bool
	data     int // offset of its data; 0: none
	binary   int // bytes behind the JSON; below 0: none
}

// input reads one element of inputs; its data stay where they are until its type is known.
func (d *inferDecoder) input() error {
	in := inferInput{binary: -1}
	d.peek()
	first := d.i
	err := d.object("an object with name, shape, datatype and data", 3, func(key []byte) (err error) {
		switch string(key) {
		case "name":
			in.value.Name, err = d.name()
		case "datatype":
			in.datatype, err = d.name()
		case "shape":
			in.shaped = true
			in.value.Shape, err = d.shape()
		case "data":
			if d.kind() == "Null" {
				return d.literal("null")
			}
			in.data = d.i
			err = d.skip(3)
		case "parameters":
			in.binary, err = d.tensorParameters("binary_data_size")
		default:
			err = d.skip(3)
		}
		return err
	})
	if err != nil {
		return err
	}
	if in.value.DType, err = serving.ParseDatatype(in.datatype); err != nil {
		return contentError(first, "has a wrong datatype: %v", err)
	}
	switch {
	case in.value.Name == "":
		return contentError(first, "has no name")
	case !in.shaped:
		return contentError(first, "has no shape")
	case serving.Elements(in.value.Shape) < 0:
		return contentError(first, "has a shape of more than 2^31 elements, or a negative dimension")
	case in.data > 0 && in.binary >= 0:
		return contentError(first, "has data and a binary_data_size: give one of them")
	case in.data == 0 && in.binary < 0:
		return contentError(first, "has no data, and no binary_data_size in its parameters")
	}
	d.inputs = append(d.inputs, in)
	return nil
}

// shape reads an array of dimensions.
func (d *inferDecoder) shape() ([]int, error) {
	if d.kind() != "Array" {
		return nil, d.mustBe("an array of dimensions")
	}
	first := d.i
	d.i++
	shape := []int{}
	if d.take(']') {
		return shape, nil
	}
	for {
		if len(shape) > serving.MaxDims {
			return nil, contentError(first, "has more than %d dimensions and the batch", serving.MaxDims)
		}
		c, at := d.peek(), d.i
		if !isDigit(c) {
			return nil, d.mustBe("a whole number from 0 on")
		}
		n, err := d.number()
		if err != nil {
			return nil, err
		}
		if n.form != whole || n.mantissa > math.MaxInt32 {
			return nil, contentError(at, "must be a whole number from 0 to 2^31 - 1")
		}
		shape = append(shape, int(n.mantissa))
		if more, err := d.moreElements(); !more {
			return shape, err
		}
	}
}

// tensorParameters reads the parameters of a tensor for the one that is a number of bytes, below 0 if
// it is not there.
func (d *inferDecoder) tensorParameters(name string) (size int, err error) {
	size = -1
	if d.kind() == "Null" {
		return size, d.literal("null")
	}
	err = d.object("an object", 4, func(key []byte) error {
		if string(key) != name {
			return d.skip(4)
		}
		at := d.i
		if !isDigit(d.peek()) {
			return d.mustBe("a number of bytes")
		}
		n, err := d.number()
		if err != nil {
			return err
		}
		if n.form != whole || n.mantissa > math.MaxInt32 {
			return contentError(at, "must be a number of bytes below 2^31")
		}
		size = int(n.mantissa)
		return nil
	})
	return size, err
}

// fill gives an input its data, of which rest begins with those that are binary, and returns what is
// left of it.
func (d *inferDecoder) fill(in *inferInput, rest []byte) ([]byte, error) {
	v := &in.value
	if in.binary < 0 {
		d.i = in.data
		return rest, d.elements(v)
	}
	wrong := func(err error) error {
		return contentError(0, "has input %q with a wrong binary_data_size: %v", v.Name, err)
	}
	if in.binary > len(rest) {
		return nil, wrong(fmt.Errorf("it is %d, and %d bytes are left", in.binary, len(rest)))
	}
	v.Data, rest = rest[:in.binary], rest[in.binary:]
	if err := inference.CheckRaw(v); err != nil {
		return nil, wrong(err)
	}
	return rest, nil
}

// elements reads data as JSON: an array, flat or nested in any way, of as many elements as the shape has.
func (d *inferDecoder) elements(v *serving.Value) error {
	first, want := d.i, serving.Elements(v.Shape)
	if v.DType == serving.Float16 || v.DType == serving.BFloat16 {
		return contentError(first, "cannot be %s, which only binary data carry", v.DType.Datatype())
	}
	if d.kind() != "Array" {
		return d.mustBe("an array")
	}
	v.Data = make([]byte, 0, min(want, len(d.b)/2+1)*max(v.DType.Size(), 4))
	n, err := d.flatten(v, 0)
	if err == nil && n != want {
		return contentError(first, "has %d elements, and the shape %v needs %d", n, v.Shape, want)
	}
	return err
}

// flatten reads the array at i, and those in it.
func (d *inferDecoder) flatten(v *serving.Value, depth int) (n int, err error) {
	if depth > serving.MaxDims {
		return 0, contentError(d.i, "is nested deeper than %d dimensions", serving.MaxDims)
	}
	d.i++
	if d.take(']') {
		return 0, nil
	}
	for {
		if d.kind() == "Array" {
			var inner int
			inner, err = d.flatten(v, depth+1)
			n += inner
		} else {
			err = d.element(v)
			n++
		}
		if err != nil {
			return n, err
		}
		if more, err := d.moreElements(); !more {
			return n, err
		}
	}
}

// element reads one element of JSON data. A null is not a number, as some clients write NaN.
func (d *inferDecoder) element(v *serving.Value) (err error) {
	switch c := d.peek(); {
	case v.DType == serving.Blob:
		if c != '"' {
			return d.mustBe("a string")
		}
		t, err := d.text()
		if err != nil {
			return err
		}
		v.Data = serving.AppendElement(v.Data, t.bytes())
		return nil
	case v.DType == serving.Bool && (c == '0' || c == '1'):
		v.Data = append(v.Data, c-'0')
		d.i++
		return nil
	case c == 'n' && v.DType == serving.Float32:
		v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(float32(math.NaN())))
		return d.literal("null")
	case c == 'n' && v.DType == serving.Float64:
		v.Data = binary.LittleEndian.AppendUint64(v.Data, math.Float64bits(math.NaN()))
		return d.literal("null")
	}
	v.Data, err = d.appendElement(v.Data, v.DType, true)
	return err
}
