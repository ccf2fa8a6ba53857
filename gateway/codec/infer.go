package codec

import (
	"slices"

	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// DecodeInfer reads the body of a request of the Open Inference Protocol: JSON, with or without binary
// tensors behind it, so many bytes of JSON or below 0 all. Without any JSON the body is the data of the model's only
// input. The data of its inputs may point into the body. Its error is always an *Error.
func DecodeInfer(body []byte, header int) (inference.Request, error) {
	text, rest := body, []byte(nil)
	if header >= 0 {
		if header > len(body) {
			return inference.Request{}, &Error{Cause: "the body is shorter than Inference-Header-Content-Length says"}
		}
		text, rest = body[:header], body[header:]
	}
	if header == 0 {
		return inference.Request{Raw: body, Options: inference.Options{Binary: true}}, nil
	}
	text = withoutMark(text)
	d := inferDecoder{parser: parser{b: text}}
	d.seen = d.room[:0]
	if err := d.body(rest); err != nil {
		return inference.Request{}, refused(text, err)
	}
	return d.out, nil
}

// inferDecoder reads one request.
type inferDecoder struct {
	parser
	out    inference.Request
	inputs []inferInput
	said   []bool   // of each output: whether it is wanted binary
	seen   [][]byte // members of the objects that are being read
	room   [16][]byte
}

// body reads the JSON, and then the data of the inputs, of which rest has those that are binary.
func (d *inferDecoder) body(rest []byte) error {
	err := d.object(`an object, such as {"inputs": [{"name": "input", "shape": [1, 2], "datatype": "FP64", "data": [1.5, 2]}]}`, 1, func(key []byte) (err error) {
		switch string(key) {
		case "id":
			d.out.ID, err = d.optionalName()
		case "parameters":
			err = d.options()
		case "inputs":
			err = d.list("inputs", func() error { return d.input() })
		case "outputs":
			err = d.list("outputs", func() error { return d.output() })
		default: // as the protocol wants it
			err = d.skip(1)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := d.end(); err != nil {
		return err
	}
	for i, said := range d.said {
		if !said {
			d.out.Outputs[i].Binary = d.out.Options.Binary
		}
	}
	if len(d.inputs) == 0 {
		return contentError(0, `needs the key "inputs", with at least one input`)
	}
	for i := range d.inputs {
		if rest, err = d.fill(&d.inputs[i], rest); err != nil {
			return err
		}
		d.out.Inputs = append(d.out.Inputs, d.inputs[i].value)
	}
	if len(rest) > 0 {
		return contentError(0, "is followed by %d bytes, which belong to no input: their binary_data_size must add up to what follows the JSON", len(rest))
	}
	return nil
}

// object reads the object at i with read for the value of each member, of those of one name the first.
func (d *inferDecoder) object(what string, depth int, read func(key []byte) error) error {
	if d.kind() != "Object" {
		return d.mustBe(what)
	}
	d.i++
	if d.take('}') {
		return nil
	}
	from := len(d.seen)
	defer func() { d.seen = d.seen[:from] }()
	for {
		key, err := d.key()
		if err != nil {
			return err
		}
		same := func(k []byte) bool { return string(k) == string(key) }
		if slices.ContainsFunc(d.seen[from:], same) || len(d.seen)-from >= maxMembers {
			err = d.skip(depth)
		} else {
			d.seen = append(d.seen, key)
			err = read(key)
		}
		if err != nil {
			return err
		}
		if more, err := d.moreMembers(); !more {
			return err
		}
	}
}

// maxMembers bounds the members of an object that are looked at.
const maxMembers = 64

// list reads the array at i, or null, with read for each element.
func (d *inferDecoder) list(name string, read func() error) error {
	if d.kind() == "Null" {
		return d.literal("null")
	}
	if d.kind() != "Array" {
		return d.mustBe("an array of objects")
	}
	first := d.i
	d.i++
	if d.take(']') {
		return nil
	}
	for n := 0; ; n++ {
		if n == serving.MaxTensors {
			return contentError(first, "has more than %d elements", serving.MaxTensors)
		}
		if err := read(); err != nil {
			return err
		}
		if more, err := d.moreElements(); !more {
			return err
		}
	}
}

// optionalName reads a name, or null.
func (d *inferDecoder) optionalName() (string, error) {
	if d.kind() == "Null" {
		return "", d.literal("null")
	}
	return d.name()
}

// options reads the parameters of the request; others than ours are tolerated.
func (d *inferDecoder) options() error {
	if d.kind() == "Null" {
		return d.literal("null")
	}
	o := &d.out.Options
	return d.object("an object", 2, func(key []byte) (err error) {
		switch string(key) {
		case "timeout":
			if d.peek() == '0' { // as good as none
				return d.skip(2)
			}
			o.Timeout, err = d.slo()
		case "binary_data_output":
			o.Binary, err = d.flag()
		case "uid":
			o.User, err = d.name()
		case "priority":
			o.Priority, err = d.clampedPriority()
		case "context":
			o.Context, err = d.name()
		default:
			err = d.skip(2)
		}
		return err
	})
}

// output reads one element of outputs.
func (d *inferDecoder) output() error {
	var out inference.Output
	var said bool
	d.peek()
	first := d.i
	err := d.object("an object with a name", 3, func(key []byte) (err error) {
		switch string(key) {
		case "name":
			out.Name, err = d.name()
		case "parameters":
			if d.kind() == "Null" {
				return d.literal("null")
			}
			err = d.object("an object", 4, func(key []byte) (err error) {
				if string(key) == "binary_data" {
					said = true
					out.Binary, err = d.flag()
					return err
				}
				return d.skip(4)
			})
		default:
			err = d.skip(3)
		}
		return err
	})
	if err == nil && out.Name == "" {
		return contentError(first, "has no name")
	}
	d.out.Outputs, d.said = append(d.out.Outputs, out), append(d.said, said)
	return err
}
