package rpc

import (
	"bytes"
	"encoding/binary"
)

// Kind is the kind of a frame.
type Kind uint8

const (
	KindHello    Kind = 1
	KindAnnounce Kind = 2
	KindPredict  Kind = 3
	KindReply    Kind = 4
	KindCancel   Kind = 5
	KindPing     Kind = 6
	KindPong     Kind = 7
	KindDrain    Kind = 8
	KindBye      Kind = 9
	KindFeedback Kind = 10
	KindLoad     Kind = 11
	KindUnload   Kind = 12
	KindMemory   Kind = 13
	KindShared   Kind = 14
	KindFree     Kind = 15
	KindMetrics  Kind = 128
)

// Optional says that a receiver which does not know the kind skips the frame.
func (k Kind) Optional() bool { return k >= 128 }

// Flags are the flag bits of a frame's header.
type Flags uint8

const (
	FlagCompressed Flags = 1
	FlagEnd        Flags = 2 // REPLY: nothing more comes for this batch
)

const (
	headerSize = 8

	// MaxFrame is the largest body that this implementation accepts, in bytes.
	MaxFrame = 64 << 20
	// MinMaxFrame is the least a peer may name as its own limit.
	MinMaxFrame = 64 << 10
	// MaxBatch is the largest number of inputs in one PREDICT.
	MaxBatch = 65536
	// maxEntries is the largest number of entries in any frame.
	maxEntries = MaxBatch
)

// Frame is one received frame. Body is valid until the handler returns, unless it takes it.
type Frame struct {
	Kind  Kind
	Flags Flags
	Body  []byte

	from  *reader // nil: not from a socket, or its body has been taken
	apart []apart // payloads that belong into the body, of a connection within the process
	at    int     // where the body begins, where those say where they belong
}

// Take makes the body of a large frame the handler's own, for good. It says whether that was done: a small one
// is better copied.
func (f *Frame) Take() bool {
	if f.from == nil || len(f.Body) <= readBuffer {
		return false
	}
	f.from.giveAway(f.Flags&FlagCompressed != 0)
	f.from = nil
	return true
}

// Keep makes the body the handler's own for good, with a copy where that is needed.
func (f *Frame) Keep() {
	if !f.Take() {
		f.Body, f.from = bytes.Clone(f.Body), nil
	}
}

// AppendFrame appends one whole frame, header and body, uncompressed.
func AppendFrame(b []byte, kind Kind, flags Flags, body []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, byte(kind), byte(flags), 0, 0)
	return append(b, body...)
}

// parseHeader gives the size as it was claimed, which may not even fit an int.
func parseHeader(h []byte) (size uint32, kind Kind, flags Flags) {
	return binary.LittleEndian.Uint32(h), Kind(h[4]), Flags(h[5])
}
