package rpc

import (
	"errors"
	"fmt"
	"io"
)

const (
	readBuffer  = 64 << 10
	trusted     = 16      // times what has come of a frame: as much room is made for what it is said to have
	keepReading = 4 << 20 // larger buffers are given back between frames
)

// reader takes frames from a stream. One read of the stream may bring many.
type reader struct {
	src      io.Reader
	limit    int // largest body, compressed or not
	buf      []byte
	small    []byte // a buffer of readBuffer bytes, while buf is a larger one; may be nil
	from, to int    // what of buf is read and not yet handed out
	lz4      bool   // compressed bodies were agreed on
	raw      []byte // the last compressed body, expanded
}

func newReader(src io.Reader, limit int, lz4 bool) *reader {
	return &reader{src: src, limit: limit, lz4: lz4, buf: make([]byte, readBuffer)}
}

// next returns the next frame; its body is valid until the call after.
func (r *reader) next() (Frame, error) {
	if err := r.fill(headerSize); err != nil {
		return Frame{}, err
	}
	size, kind, flags := parseHeader(r.buf[r.from:])
	if uint64(size) > uint64(r.limit) {
		return Frame{}, &ProtocolError{Frame: "any", Field: "size", Why: fmt.Sprintf("%d is above the limit of %d", size, r.limit)}
	}
	whole := headerSize + int(size)
	if err := r.fill(whole); err != nil {
		return Frame{}, err
	}
	end := r.from + whole
	f := Frame{Kind: kind, Flags: flags, Body: r.buf[r.from+headerSize : end : end], from: r}
	r.from = end
	if flags&FlagCompressed == 0 {
		return f, nil
	}
	return r.expand(f)
}

// giveAway lets the handler of the last frame have the memory of its body.
func (r *reader) giveAway(expanded bool) {
	if expanded {
		r.raw = nil
		return
	}
	rest := r.buf[r.from:r.to]
	if len(rest) > readBuffer {
		r.buf = make([]byte, len(rest))
	} else {
		r.shrink()
	}
	r.from, r.to = 0, copy(r.buf, rest)
}

// shrink goes back to the small buffer.
func (r *reader) shrink() {
	if r.buf, r.small = r.small, nil; r.buf == nil {
		r.buf = make([]byte, readBuffer)
	}
}

// more says whether the next frame is there already.
func (r *reader) more() bool {
	if r.to-r.from < headerSize {
		return false
	}
	size, _, _ := parseHeader(r.buf[r.from:])
	return uint64(r.to-r.from) >= headerSize+uint64(size)
}

func (r *reader) expand(f Frame) (Frame, error) {
	if !r.lz4 {
		return Frame{}, &ProtocolError{Frame: "compressed", Field: "flags", Why: "compression was not negotiated"}
	}
	if cap(r.raw) > keepReading {
		r.raw = nil
	}
	var err error
	r.raw, err = decompress(r.raw, f.Body, r.limit)
	f.Body = r.raw
	return f, err
}

// fill reads until n bytes are there, from r.from on.
func (r *reader) fill(n int) error {
	for r.to-r.from < n {
		r.makeRoom(n)
		got, err := r.src.Read(r.buf[r.to:])
		r.to += got
		if err != nil && got == 0 {
			if errors.Is(err, io.EOF) && r.to > r.from {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("rpc: read: %w", err)
		}
	}
	return nil
}

// makeRoom makes sure that the buffer can take at least one more byte of the n
// wanted. It grows as bytes arrive, so that a claimed size alone allocates nothing,
// and shrinks again between frames.
func (r *reader) makeRoom(n int) {
	switch {
	case r.from == r.to && len(r.buf) > keepReading:
		r.shrink()
		r.from, r.to = 0, 0
	case r.from == r.to:
		r.from, r.to = 0, 0
	case r.from+n > len(r.buf) && r.from > 0:
		r.to = copy(r.buf, r.buf[r.from:r.to])
		r.from = 0
	}
	if r.to == len(r.buf) {
		larger := make([]byte, min(max(2*len(r.buf), min(n, trusted*len(r.buf))), headerSize+r.limit))
		copy(larger, r.buf)
		if len(r.buf) == readBuffer {
			r.small = r.buf
		}
		r.buf = larger
	}
}
