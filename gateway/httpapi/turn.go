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
	// turnWithin bounds the wait for a turn.
	turnWithin = 2 * time.Second
)

// errNoTurn refuses a request that has waited for its turn too long.
var errNoTurn = errors.New("too many large bodies are being read")

// newTurns is one for each processor but one.
func newSlots() chan struct{} { return make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)) }

// takeTurn waits until the heavy body of a connection may be read, unless it may already.
func (s *Server) takeTurn(c *conn) error {
	if c.turn {
		return nil
	}
	late := time.NewTimer(turnWithin)
	defer late.Stop()
	select {
	case s.decoding <- struct{}{}:
		c.turn = true
		wakeAnother()
		return nil
	case <-late.C:
		return errNoTurn
	}
}

// wakeAnother has another processor, if one is idle, look what comes from the network. The one
// that we run on may have been the only one to look, and does not before we are done; Go by itself
// looks again after 10 ms or more.
func wakeAnother() { go func() {}() }

// endTurn lets the next one read.
func (s *Server) endTurn(c *conn) {
	if c.turn {
		c.turn = false
		<-s.decoding
	}
}

// turnReader takes a turn for what turns out to be heavy.
type turnReader struct {
	io.Reader
	s    *Server
	c    *conn
	read int
}

func (r *turnReader) Read(b []byte) (int, error) {
	if r.read >= heavyBody {
		if err := r.s.takeTurn(r.c); err != nil {
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

// breathe lets others come first, those too who wait for the network: while a processor always
// has something to run, it does not look whether anything has come, and bytes may come faster
// than they are read.
func breathe() { time.Sleep(50 * time.Microsecond) }
