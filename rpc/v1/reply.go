package v1

import (
	"encoding/binary"
	"fmt"
	"math"
)

const outputSize = 8 // bytes of one output in a reply

// AppendReply appends the reply to a batch: one output per input, in their order.
func AppendReply(b []byte, outputs []float64) []byte {
	for _, x := range outputs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// DecodeReply reads the whole reply to a batch of n inputs.
func DecodeReply(reply []byte, n int) ([]float64, error) {
	if len(reply) != n*outputSize {
		return nil, fmt.Errorf("rpc/v1: the reply has %d bytes, and %d inputs need %d", len(reply), n, n*outputSize)
	}
	outputs := make([]float64, n)
	for i := range outputs {
		outputs[i] = math.Float64frombits(binary.LittleEndian.Uint64(reply[i*outputSize:]))
	}
	return outputs, nil
}
