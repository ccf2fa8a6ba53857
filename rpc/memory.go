package rpc

import (
	"encoding/binary"
	"net"
	"slices"

	"github.com/topsail-serving/topsail/internal/sharedmem"
)

const (
	slots    = 4
	slotSize = 16 << 20 // bytes: larger frames go through the socket
)

// memory is shared with a peer on this machine that has FeatureMemory: large frames are copied there, once, instead of
// into the socket and out of it. Each is in a slot of its own until the peer frees that, which it does for the
// first time when it has opened the memory.
type memory struct {
	shared *sharedmem.Memory
	free   [slots]bool // guarded, as the following, by the connection's mu
	dirty  bool        // slots were written
	recent bool        // and one of them since the last look
}

// offer makes the memory, and returns the frame that tells the peer of it. Where the system has none, frames
// go through the socket as before.
func (c *Conn) offer() []byte {
	c.shares = false
	shared, err := sharedmem.New(slots * slotSize)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	c.memory = &memory{shared: shared}
	c.mu.Unlock()
	return AppendFrame(nil, KindMemory, 0, appendMemory(nil, shared.Path(), shared.Link()))
}

// appendMemory appends the body of a MEMORY frame.
func appendMemory(b []byte, path, link string) []byte {
	return appendStr16(appendStr16(appendU32(appendU32(b, slots), slotSize), path), link)
}

// appendShared appends the body of a SHARED frame: one with such a kind, flags and size of its body is in a slot.
func appendShared(b []byte, kind Kind, flags Flags, slot, size int) []byte {
	return appendU32(appendU32(append(b, byte(kind), byte(flags), 0, 0), uint32(slot)), uint32(size))
}

// slot takes a free slot for a frame of some bytes, or is negative. c.mu is held.
func (c *Conn) slot(size int) int {
	if c.memory == nil || size > slotSize {
		return -1
	}
	for i, free := range c.memory.free { // the lowest: its memory may still be in the caches
		if free {
			c.memory.free[i], c.memory.dirty, c.memory.recent = false, true, true
			return i
		}
	}
	return -1
}

// freed takes in what the peer has freed.
func (c *Conn) freed(body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for b := (cursor{frame: "FREE", b: body}); b.more(); {
		i := b.u32("slot")
		if b.err == nil && (c.memory == nil || i >= slots || c.memory.free[i]) {
			b.fail("slot", "is not in use")
		}
		if b.err != nil {
			return b.err
		}
		c.memory.free[i] = true
	}
	return nil
}

// put copies the frame b, with the payloads that belong between its bytes, into a slot, and returns the body of the frame that
// refers to it. from is where b begins in what the payloads are of.
func (c *Conn) put(slot int, b []byte, from int, payloads []apart) []byte {
	to := c.memory.shared.Bytes()[slot*slotSize:][:0:slotSize]
	at := headerSize
	for _, p := range payloads {
		to = append(append(to, b[at:p.at-from]...), p.data...)
		at = p.at - from
	}
	to = append(to, b[at:]...)
	return appendShared(nil, Kind(b[4]), Flags(b[5]), slot, len(to))
}

// forget gives back the memory that frames have left behind, if no slot is in use, and none was since it was last called.
func (c *Conn) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.memory; m != nil {
		if m.dirty && !m.recent && !slices.Contains(m.free[:], false) {
			m.shared.Forget()
			m.dirty = false
		}
		m.recent = false
	}
}

// endMemory ends the memory, when nothing is written any more.
func (c *Conn) endMemory() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory != nil {
		_ = c.memory.shared.Close() // it ends with the process at the latest
		c.memory = nil
	}
}

// writeOut writes frames with the payloads that belong between them.
func (c *Conn) writeOut(b []byte, payloads []apart) error {
	if len(payloads) == 0 {
		_, err := c.nc.Write(b)
		return err
	}
	pieces, from := make(net.Buffers, 0, 2*len(payloads)+1), 0
	for len(payloads) > 0 {
		n, start, end := first(b, payloads)
		c.mu.Lock()
		slot := c.slot(int(binary.LittleEndian.Uint32(b[start:])))
		c.mu.Unlock()
		if slot >= 0 {
			reference := c.put(slot, b[start:end], start, payloads[:n])
			pieces = append(pieces, b[from:start], AppendFrame(nil, KindShared, 0, reference))
			from = end
		} else {
			for _, p := range payloads[:n] {
				pieces = append(pieces, b[from:p.at], p.data)
				from = p.at
			}
		}
		payloads = payloads[n:]
	}
	pieces = append(pieces, b[from:])
	if c.shares {
		pieces = append(pieces, c.offer())
	}
	_, err := pieces.WriteTo(c.nc)
	return err
}

// first is the number of payloads in the first frame that has any, and where that is in b.
func first(b []byte, payloads []apart) (n, start, end int) {
	start = payloads[0].frame
	end = start + headerSize + int(binary.LittleEndian.Uint32(b[start:]))
	for n < len(payloads) && payloads[n].frame == start {
		end -= len(payloads[n].data)
		n++
	}
	return n, start, end
}
