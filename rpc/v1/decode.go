package v1

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Batch is a request as its container sees it. Inputs hold little-endian
// elements of Format.InputType, or text; they belong to the caller.
type Batch struct {
	Format Format
	Inputs [][]byte // none for Shutdown
}

// firstRead bounds the memory that a request gets before any of its bytes came.
const firstRead = 64 << 10

// DecodeBatch reads one request and not a byte more. It fails with io.EOF when r
// ends before the request begins, and with a *ProtocolError when the request is
// cut short or wrong. Memory grows with the bytes that come, not with what the
// request claims.
func DecodeBatch(r io.Reader) (Batch, error) {
	var head [9]byte
	if err := readHead(r, head[:5], 0); err != nil {
		return Batch{}, err
	}
	f, count := Format(head[0]), binary.LittleEndian.Uint32(head[1:])
	if f > Strings {
		return Batch{}, wrong("format", 0, "%d is unknown", f)
	}
	if f == Shutdown {
		return Batch{}, checkShutdown(count)
	}
	if count == 0 || count > MaxBatch {
		return Batch{}, wrong("number of inputs", 1, "%d is not between 1 and %d", count, MaxBatch)
	}
	if err := readHead(r, head[5:], 5); err != nil {
		return Batch{}, err
	}
	inputs, err := readInputs(r, f, int(count), binary.LittleEndian.Uint32(head[5:]))
	return Batch{Format: f, Inputs: inputs}, err
}

func checkShutdown(count uint32) error {
	if count != 0 {
		return wrong("number of inputs", 1, "is %d, and a shutdown has none", count)
	}
	return nil
}

// readHead fills part, which begins at offset off of the request.
func readHead(r io.Reader, part []byte, off int) error {
	n, err := io.ReadFull(r, part)
	if err == nil || (err == io.EOF && off == 0) {
		return err
	}
	return wrong("header", off+n, "is cut short: %w", noEOF(err))
}

// readInputs reads the rest of a request; size is the last number of its header.
func readInputs(r io.Reader, f Format, n int, size uint32) ([][]byte, error) {
	field, content := "content bytes", uint64(size)
	if f.fixed() {
		// At most 2^16 x 2^32 x 2^3.
		field, content = "vector length", uint64(n)*uint64(size)*uint64(f.elementSize())
	}
	if content > maxContent {
		return nil, wrong(field, 5, "%d makes the request larger than %d bytes", size, maxContent)
	}
	body, err := readContent(r, int(content))
	if err != nil {
		return nil, err
	}
	c := cursor{b: body, base: 9}
	switch {
	case f == Strings:
		return splitText(c, n)
	case f.fixed():
		return splitFixed(body, n), nil
	default:
		return splitVariable(c, n, f.elementSize())
	}
}

func readContent(r io.Reader, n int) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(min(n, firstRead) + bytes.MinRead)
	got, err := io.CopyN(&buf, r, int64(n))
	if err != nil {
		return nil, wrong("content", 9+int(got), "has %d of %d bytes: %w", got, n, noEOF(err))
	}
	return buf.Bytes(), nil
}

func splitFixed(body []byte, n int) [][]byte {
	inputs := make([][]byte, n)
	size := len(body) / n
	for i := range inputs {
		inputs[i] = body[i*size : (i+1)*size : (i+1)*size]
	}
	return inputs
}

func splitVariable(c cursor, n, elementSize int) ([][]byte, error) {
	var inputs [][]byte
	for range n {
		length, err := c.take(4, "length")
		if err != nil {
			return nil, err
		}
		elements := uint64(binary.LittleEndian.Uint32(length))
		in, err := c.take(int(min(elements*uint64(elementSize), maxContent)), "elements")
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	if left := len(c.rest()); left > 0 {
		return nil, c.fail("content bytes", "count %d more than the inputs take", left)
	}
	return inputs, nil
}

// noEOF says that an end in the middle is not a clean one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
