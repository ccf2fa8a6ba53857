package httpapi

import (
	"errors"
	"io"
	"runtime"
	"time"
)

const (
	// heavyBody is from how many bytes on a body takes a processor for milliseconds. Fewer of
	// them are inflated or decoded at a time than there are processors: all others' queries
	// would stand behind them.
	heavyBody = 256 << 10
	// slotWithin bounds the wait for a slot.
	slotWithin = 2 * time.Second
)

// errNoSlot refuses a request that has waited for a slot too long.
var errNoSlot = errors.New("too many large bodies are being read")

// newSlots makes one for each processor but one.
func newSlots() chan struct{} { return make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)) }

// takeSlot waits until the heavy body of a connection may be read, unless it may already.
func (s *Server) takeSlot(c *conn) error {
	if c.slot {
		return nil
	}
	late := time.NewTimer(slotWithin)
	defer late.Stop()
	select {
	case s.decoding <- struct{}{}:
		c.slot = true
		wakeAnother()
		return nil
	case <-late.C:
		return errNoSlot
	}
}

// wakeAnother has another idle processor poll the network. The present one may have been the only
// one that polled, and does not until it is done; without this, Go polls again after 10 ms or
// more.
func wakeAnother() { go func() {}() }

// releaseSlot lets the next request read.
func (s *Server) releaseSlot(c *conn) {
	if c.slot {
		c.slot = false
		<-s.decoding
	}
}

// slotReader takes a slot for a body that turns out to be heavy.
type slotReader struct {
	io.Reader
	s    *Server
	c    *conn
	read int
}

func (r *slotReader) Read(b []byte) (int, error) {
	if r.read >= heavyBody {
		if err := r.s.takeSlot(r.c); err != nil {
			return 0, err
		}
	}
	n, err := r.Reader.Read(b[:min(len(b), breatheEvery)])
	r.read += n
	if r.read%breatheEvery < n {
		breathe()
	}
	return n, err
}

// breatheEvery is after how many bytes of a body others come first.
const breatheEvery = 256 << 10

// breathe lets other goroutines run first, also those that wait for the network: a busy processor
// does not poll the network, and bytes may arrive faster than they are read.
func breathe() { time.Sleep(50 * time.Microsecond) }
