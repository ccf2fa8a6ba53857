package rpc

import (
	"encoding/binary"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// apart is a payload that is sent from where it is: to copy a large one into the frame takes longer than all else that
// a query costs a connection.
type apart struct {
	frame, at int // in the frames that wait, where its frame begins, and where it belongs
	data      []byte
}

// backlog is how much waits to be sent: bytes of frames, payloads apart from them, and the bytes of these.
type backlog struct{ out, apart, weight int }

func (b backlog) bytes() int { return b.out + b.weight }

// leaves says whether a payload is to be left where it is. What may be compressed has to be in the frame.
func (c *Conn) leaves(payload []byte) bool { return len(payload) > leaveApart && c.comp == nil }

// AppendAsk appends one entry of a PREDICT to the frame that Begin began.
func (c *Conn) AppendAsk(b []byte, a *Ask) []byte {
	if c.leaves(a.Payload) {
		return c.appendApart(b, a, nil, a.Payload)
	}
	return AppendAsk(roomFor(b, len(a.Payload)), a)
}

// AppendAskInput is AppendAsk with the payload of in, instead of a's.
func (c *Conn) AppendAskInput(b []byte, a *Ask, in serving.Input) []byte {
	var room [inputHead]byte
	head := appendInputHead(room[:0], in)
	switch {
	case !c.leaves(in.Data):
		return AppendAskInput(roomFor(b, len(in.Data)), a, in)
	case c.local != nil && len(head) > 0: // the peer would have to join them
		return c.appendApart(b, a, nil, AppendInput(make([]byte, 0, len(head)+len(in.Data)), in))
	}
	return c.appendApart(b, a, head, in.Data)
}

// appendApart appends an entry whose payload is head and data, of which the data are left where they are.
func (c *Conn) appendApart(b []byte, a *Ask, head, data []byte) []byte {
	b, at := openSize(b)
	b = append(appendU32(b, budgetMicros(a.Budget)), head...)
	c.apart = append(c.apart, apart{c.before.out, len(b), data})
	c.weight += len(data)
	b = a.appendFields(b)
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4+len(data)))
	return b
}

// roomFor makes room for some bytes, and as many as there are already: append grows large slices by less, and copies them
// the more often.
func roomFor(b []byte, n int) []byte {
	if n > cap(b)-len(b) {
		return slices.Grow(b, max(n, len(b)))
	}
	return b
}
