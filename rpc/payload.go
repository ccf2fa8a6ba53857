package rpc

import (
	"math"

	"github.com/topsail-serving/topsail/serving"
)

const maxDims = 8

// maxEmptyRows bounds the rows of a value without elements. They take no bytes on
// the wire and two or three each as JSON, so that 20 bytes could ask for gigabytes.
const maxEmptyRows = 65536

// AppendPayload appends a list of named values.
func AppendPayload(b []byte, values ...serving.Value) []byte {
	b = appendU16(b, uint16(len(values)))
	for i := range values {
		b = appendValue(b, &values[i])
	}
	return b
}

// ValueSize is what AppendPayload adds for a value.
func ValueSize(v *serving.Value) int { return 8 + min(len(v.Name), 255) + 4*len(v.Shape) + len(v.Data) }

// WrapPayload makes the payload of a value around its data, which are the last bytes of b, by writing over those before
// them. It is nil where they are not, or where there is too little before them.
func WrapPayload(b []byte, v *serving.Value) []byte {
	var room [64]byte
	head := appendValueHead(appendU16(room[:0], 1), v)
	data := len(b) - len(v.Data)
	if start := data - len(head); start >= 0 && len(v.Data) > 0 && &b[data] == &v.Data[0] {
		copy(b[start:], head)
		return b[start:]
	}
	return nil
}

func appendValue(b []byte, v *serving.Value) []byte {
	return append(appendValueHead(b, v), v.Data...)
}

// appendValueHead appends what is before the data of a value.
func appendValueHead(b []byte, v *serving.Value) []byte {
	name := clip(v.Name, 255)
	b = append(b, uint8(v.DType), uint8(len(v.Shape)), uint8(len(name)), 0)
	b = append(b, name...)
	for _, d := range v.Shape {
		b = appendU32(b, uint32(d))
	}
	return appendU32(b, uint32(len(v.Data)))
}

// AppendInput appends the payload of one input.
func AppendInput(b []byte, in serving.Input) []byte {
	return append(appendInputHead(b, in), in.Data...)
}

// inputHead is the most that an input has before its data.
const inputHead = 14

// appendInputHead appends what the payload of an input has before the data: nothing where these are a payload.
func appendInputHead(b []byte, in serving.Input) []byte {
	if in.Type == serving.Tensors {
		return b
	}
	dims := uint8(1)
	if in.Type.Text() {
		dims = 0
	}
	b = append(b, 1, 0, uint8(in.Type.DType()), dims, 0, 0)
	if dims == 1 {
		b = appendU32(b, uint32(in.Len()))
	}
	return appendU32(b, uint32(len(in.Data)))
}

// ParsePayload reads a payload that fills b. The values' data point into b.
func ParsePayload(b []byte) ([]serving.Value, error) {
	c := cursor{frame: "payload", b: b}
	values := c.payload()
	if c.err == nil && c.left() > 0 {
		c.fail("payload", "has bytes after its last value")
	}
	return values, c.err
}

// JoinPayloads makes one payload of the values of all: those without a name get the one of their payload, and "a.b" is
// the value b of the payload a.
func JoinPayloads(names []string, payloads [][]byte) ([]byte, error) {
	values := make([]serving.Value, 0, len(payloads))
	size := 2
	for i, b := range payloads {
		all, err := ParsePayload(b)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, &ProtocolError{Frame: "payload", Field: "values", Why: "are none from " + names[i]}
		}
		for _, v := range all {
			if v.Name == "" {
				v.Name = names[i]
			} else {
				v.Name = names[i] + "." + v.Name
			}
			values = append(values, v)
		}
		size += len(b) + len(all)*(len(names[i])+1)
	}
	return AppendPayload(make([]byte, 0, size), values...), nil
}

// payload reads one payload; the values' data point into the body.
func (c *cursor) payload() []serving.Value {
	count := c.u16("value count")
	if c.err != nil {
		return nil
	}
	values := make([]serving.Value, 0, min(int(count), 4))
	for range count {
		v := c.value()
		if c.err != nil {
			return nil
		}
		values = append(values, v)
	}
	return values
}

// skipPayload checks one payload without building its values.
func (c *cursor) skipPayload() []byte {
	start := c.off
	count := c.u16("value count")
	for i := uint16(0); i < count && c.err == nil; i++ {
		dtype, dims, _ := c.valueHead()
		elements := c.shape(dtype, dims, nil)
		c.checkData(dtype, dims, elements, c.blob32("data"))
	}
	if c.err != nil {
		return nil
	}
	return c.b[start:c.off:c.off]
}

func (c *cursor) value() serving.Value {
	dtype, dims, name := c.valueHead()
	v := serving.Value{DType: dtype}
	if len(name) > 0 {
		v.Name = string(name)
	}
	if dims > 0 && c.err == nil {
		v.Shape = make([]int, dims)
	}
	elements := c.shape(dtype, dims, v.Shape)
	v.Data = c.blob32("data")
	c.checkData(dtype, dims, elements, v.Data)
	return v
}

func (c *cursor) valueHead() (serving.DType, int, []byte) {
	dtype := serving.DType(c.u8("dtype"))
	dims := int(c.u8("dimensions"))
	nameLen := int(c.u8("name length"))
	c.u8("reserved")
	name := c.take(nameLen, "name")
	switch {
	case c.err != nil:
	case !dtype.Known():
		c.fail("dtype", "is unknown")
	case dims > maxDims:
		c.fail("dimensions", "are more than 8")
	case dims > 0 && dtype.Size() == 0 && dtype != serving.String && dtype != serving.Blob:
		c.fail("dimensions", "on a dtype that has no shape")
	}
	return dtype, dims, name
}

// shape reads the dimensions into out (which may be nil) and returns the number of elements.
func (c *cursor) shape(dtype serving.DType, dims int, out []int) uint64 {
	elements, size := uint64(1), uint64(max(dtype.Size(), 1))
	for i := range dims {
		d := c.u32("dimension")
		if d == 0 && elements > maxEmptyRows {
			c.fail("dimension", "is 0 below more than 65536 rows")
		}
		if elements *= uint64(d); elements*size > math.MaxInt32 {
			c.fail("dimension", "makes the value larger than 2 GiB")
		}
		if c.err != nil {
			return 0
		}
		if out != nil {
			out[i] = int(d)
		}
	}
	return elements
}

// checkData says whether the data are so many elements.
func (c *cursor) checkData(dtype serving.DType, dims int, elements uint64, data []byte) {
	size := uint64(dtype.Size())
	switch {
	case c.err != nil:
	case size > 0 && uint64(len(data)) != elements*size:
		c.fail("data", "length does not match the shape")
	case size == 0 && dims > 0:
		for ; elements > 0; elements-- {
			_, rest, ok := serving.NextElement(data)
			if !ok {
				c.fail("data", "end before the last element")
				return
			}
			data = rest
		}
		if len(data) > 0 {
			c.fail("data", "go on after the last element")
		}
	}
}
