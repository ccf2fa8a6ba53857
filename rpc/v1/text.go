package v1

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/pierrec/lz4/v4"
)

// appendText appends the body of a Strings request. The block is always there,
// also when compressing does not pay: the format has no flag for plain text. No
// text at all is the block of one zero byte, as every LZ4 compressor writes it.
func appendText(b []byte, inputs [][]byte) ([]byte, error) {
	start := len(b)
	b = appendU32(b, 0) // the content bytes, known at the end
	total := 0
	for _, in := range inputs {
		b = appendU32(b, len(in))
		total += len(in)
	}
	b, err := appendBlock(b, inputs, total)
	if err != nil {
		return b[:start], err
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b, nil
}

// appendBlock appends the inputs as one LZ4 block. LZ4 wants its source in one
// piece: it is laid out past the place of the block, in the memory of b.
func appendBlock(b []byte, inputs [][]byte, total int) ([]byte, error) {
	// With this much room LZ4 never gives up on text that does not compress.
	bound := lz4.CompressBlockBound(total)
	b = slices.Grow(b, bound+total)
	room := b[len(b) : len(b)+bound+total]
	text := room[bound:bound]
	for _, in := range inputs {
		text = append(text, in...)
	}
	n, err := lz4.CompressBlock(text, room[:bound], nil)
	if err != nil {
		return b, fmt.Errorf("rpc/v1: compress the batch: %w", err)
	}
	return b[:len(b)+n], nil
}

// lz4Ratio is more than any LZ4 block expands: a byte adds 255 bytes at most.
const lz4Ratio = 255

// splitText finds the inputs in the content of a Strings request.
func splitText(c cursor, n int) ([][]byte, error) {
	lengths, err := c.take(4*n, "lengths")
	if err != nil {
		return nil, err
	}
	total := 0
	for i := range n {
		length := int(int32(binary.LittleEndian.Uint32(lengths[4*i:])))
		if length < 0 || length > maxContent-total {
			return nil, c.failAt(c.off-4*(n-i), "length", "%d is out of range", length)
		}
		total += length
	}
	text, err := expand(c, total)
	if err != nil {
		return nil, err
	}
	inputs := make([][]byte, n)
	for i := range n {
		length := binary.LittleEndian.Uint32(lengths[4*i:])
		inputs[i], text = text[:length:length], text[length:]
	}
	return inputs, nil
}

// expand decompresses what is left of the content, which must give total bytes.
func expand(c cursor, total int) ([]byte, error) {
	block := c.rest()
	if total/lz4Ratio > len(block) {
		return nil, c.fail("compressed text", "%d bytes cannot hold the %d of the lengths", len(block), total)
	}
	text := make([]byte, total)
	got, err := lz4.UncompressBlock(block, text)
	if err != nil {
		return nil, c.fail("compressed text", "does not decompress to the %d bytes of the lengths: %w", total, err)
	}
	if got != total {
		return nil, c.fail("compressed text", "holds %d bytes, and the lengths add up to %d", got, total)
	}
	return text, nil
}
