package rpc

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// ProtocolError is a frame that does not follow the protocol.
type ProtocolError struct {
	Frame  string // what was being read
	Field  string
	Offset int // in the frame's body: where reading stopped
	Why    string
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("rpc: bad %s frame: %s at offset %d: %s", e.Frame, e.Field, e.Offset, e.Why)
}

// cursor walks a body. After the first error every read gives zero values, so
// that a decoder checks once, at its end.
type cursor struct {
	frame string
	b     []byte
	off   int
	err   error
}

func (c *cursor) fail(field, why string) {
	if c.err == nil {
		c.err = &ProtocolError{Frame: c.frame, Field: field, Offset: c.off, Why: why}
	}
}

// take returns the next n bytes, or nil and an error.
func (c *cursor) take(n int, field string) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > len(c.b)-c.off {
		c.fail(field, fmt.Sprintf("needs %d bytes, %d are left", n, len(c.b)-c.off))
		return nil
	}
	v := c.b[c.off : c.off+n : c.off+n]
	c.off += n
	return v
}

func (c *cursor) left() int { return len(c.b) - c.off }

func (c *cursor) u8(field string) uint8 {
	if v := c.take(1, field); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) u16(field string) uint16 {
	if v := c.take(2, field); v != nil {
		return binary.LittleEndian.Uint16(v)
	}
	return 0
}

func (c *cursor) u32(field string) uint32 {
	if v := c.take(4, field); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (c *cursor) u64(field string) uint64 {
	if v := c.take(8, field); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

func (c *cursor) f64(field string) float64 { return math.Float64frombits(c.u64(field)) }

func (c *cursor) str8(field string) []byte  { return c.take(int(c.u8(field)), field) }
func (c *cursor) str16(field string) []byte { return c.take(int(c.u16(field)), field) }

// blob32 takes a u32 length and that many bytes.
func (c *cursor) blob32(field string) []byte {
	n := c.u32(field)
	if n > math.MaxInt32 {
		c.fail(field, "is longer than 2 GiB")
		return nil
	}
	return c.take(int(n), field)
}

// sub takes a u32 size and returns a cursor over that many bytes, with offsets
// still counted in the whole body.
func (c *cursor) sub(field string) cursor { return c.subLess(field, 0) }

// subLess is sub where so many of the bytes are not here.
func (c *cursor) subLess(field string, less int) cursor {
	n := c.u32(field)
	if n > math.MaxInt32 {
		c.fail(field, "is longer than 2 GiB")
	}
	body := c.take(int(n)-less, field)
	return cursor{frame: c.frame, b: c.b[:c.off], off: c.off - len(body), err: c.err}
}

// more says whether something is left to read.
func (c *cursor) more() bool { return c.err == nil && c.left() > 0 }

// field reads the next optional field. What its value's cursor runs into stays
// with that cursor: the caller takes over its err.
func (c *cursor) field() (tag uint8, value cursor) {
	tag = c.u8("field tag")
	return tag, c.sub("field")
}

// rest takes what is left.
func (c *cursor) rest() []byte { return c.take(c.left(), "value") }

// count reads how many entries follow. An entry of a few bytes becomes a struct of a hundred, so
// the size of the frame alone does not bound memory.
func (c *cursor) count() int {
	n := c.u32("count")
	if n > maxEntries {
		c.fail("count", "is above 65536")
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

func appendStr8(b []byte, s string) []byte  { return append(append(b, uint8(len(s))), s...) }
func appendStr16(b []byte, s string) []byte { return append(appendU16(b, uint16(len(s))), s...) }

func appendU16(b []byte, v uint16) []byte { return binary.LittleEndian.AppendUint16(b, v) }
func appendU32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func appendU64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }
func appendF64(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendField(b []byte, tag uint8, value []byte) []byte {
	return append(appendU32(append(b, tag), uint32(len(value))), value...)
}

func appendFieldString(b []byte, tag uint8, value string) []byte {
	return append(appendU32(append(b, tag), uint32(len(value))), value...)
}

// openSize leaves room for a u32 size; closeSize fills it in.
func openSize(b []byte) ([]byte, int) { return append(b, 0, 0, 0, 0), len(b) }

func closeSize(b []byte, at int) []byte {
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// clip cuts s to at most n bytes, between two characters, for texts that travel
// with a short length.
func clip[T string | []byte](s T, n int) T {
	if len(s) <= n {
		return s
	}
	for end := n; end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:n] // no UTF-8
}
