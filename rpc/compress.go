package rpc

import (
	"encoding/binary"
	"fmt"

	"github.com/pierrec/lz4/v4"
)

const (
	compressMin  = 1 << 10 // bodies below this are not worth a try
	compressPay  = 1.1     // least ratio that pays for the work
	compressRest = 64      // bodies of that size left alone after one that did not pay
)

// compressor compresses outgoing bodies while that pays.
type compressor struct {
	lz4  lz4.Compressor
	rest int // bodies to let pass before the next try
	buf  []byte
}

// try returns the compressed body, raw size first, or nil when it does not pay.
// The result is valid until the next call.
func (c *compressor) try(body []byte) []byte {
	if len(body) < compressMin {
		return nil
	}
	if c.rest > 0 {
		c.rest--
		return nil
	}
	limit := int(float64(len(body)) / compressPay)
	if cap(c.buf) < limit {
		c.buf = make([]byte, limit)
	}
	buf := c.buf[:limit]
	if cap(buf) > keepBuffer {
		c.buf = nil
	}
	n, err := c.lz4.CompressBlock(body, buf[4:])
	if err != nil || n == 0 {
		c.rest = compressRest
		return nil
	}
	binary.LittleEndian.PutUint32(buf, uint32(len(body)))
	return buf[:4+n]
}

// decompress expands body into buf, growing it up to limit.
func decompress(buf, body []byte, limit int) ([]byte, error) {
	if len(body) < 4 {
		return buf, &ProtocolError{Frame: "compressed", Field: "raw size", Why: "is missing"}
	}
	claimed := uint64(binary.LittleEndian.Uint32(body))
	// A block expands at most 255 times, so a claim beyond that is a lie, found
	// out before its memory is allocated.
	if claimed > uint64(limit) || claimed > 255*uint64(len(body)) {
		return buf, &ProtocolError{Frame: "compressed", Field: "raw size", Why: fmt.Sprintf("%d is more than the limit or than the block can hold", claimed)}
	}
	raw := int(claimed)
	if buf == nil || cap(buf) < raw { // nil would make the library write to address 0
		buf = make([]byte, raw)
	}
	n, err := lz4.UncompressBlock(body[4:], buf[:raw])
	if err != nil || n != raw {
		return buf, &ProtocolError{Frame: "compressed", Field: "block", Offset: 4, Why: "does not expand to its raw size"}
	}
	return buf[:raw], nil
}
