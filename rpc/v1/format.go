package v1

import (
	"fmt"

	"github.com/topsail-serving/topsail/serving"
)

// Format is the first byte of a request. The numbers are those of the wire.
type Format uint8

const (
	Shutdown        Format = 0 // no inputs: the container is asked to end
	FixedInts       Format = 1 // vectors of one length
	FixedDoubles    Format = 2
	FixedBytes      Format = 3
	VariableInts    Format = 4 // vectors, each with its own length
	VariableDoubles Format = 5
	VariableBytes   Format = 6
	Strings         Format = 7 // texts, compressed together as one LZ4 block
)

const (
	// MaxBatch is the largest number of inputs in one request.
	MaxBatch = 65536

	// maxContent bounds the bytes of a request's inputs, which the wire counts in
	// 32 bits. It is the most that LZ4 can hold in one block.
	maxContent = 0x7E000000

	shutdownAck = 1234 // what a container replies to Shutdown
)

// toVariable leads from a fixed format to the variable one of the same elements.
const toVariable = VariableInts - FixedInts

// formatOf is the format for inputs of a type. Floats travel as doubles.
func formatOf(t serving.InputType, oneLength bool) (Format, error) {
	var f Format
	switch t {
	case serving.Ints:
		f = FixedInts
	case serving.Floats, serving.Doubles:
		f = FixedDoubles
	case serving.Bytes:
		f = FixedBytes
	case serving.Strings:
		return Strings, nil
	default:
		return 0, fmt.Errorf("rpc/v1: %v has no format in version 1", t)
	}
	if !oneLength {
		f += toVariable
	}
	return f, nil
}

// InputType is the type of the inputs that f carries, or 0 for Shutdown.
func (f Format) InputType() serving.InputType {
	switch f {
	case FixedInts, VariableInts:
		return serving.Ints
	case FixedDoubles, VariableDoubles:
		return serving.Doubles
	case FixedBytes, VariableBytes:
		return serving.Bytes
	case Strings:
		return serving.Strings
	}
	return 0
}

func (f Format) fixed() bool { return f >= FixedInts && f <= FixedBytes }

// elementSize is the number of bytes of one element on the wire.
func (f Format) elementSize() int { return max(1, f.InputType().DType().Size()) }
