package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	keepBuffer  = 1 << 20 // larger buffers are given back once they are empty
	maxBacklog  = 64 << 20
	writeWithin = 5 * time.Second // a peer that reads nothing for so long is gone
)

// ErrClosed is returned by End on a connection that has ended.
var ErrClosed = errors.New("rpc: the connection is closed")

// ErrBacklog is returned by End when the peer does not read fast enough and
// maxBacklog bytes wait for it already; the frame was not sent.
var ErrBacklog = errors.New("rpc: too much is waiting to be sent on the connection")

// ErrTooLarge is returned by End for a frame above the peer's limit, not sent.
var ErrTooLarge = errors.New("rpc: the frame is larger than the peer accepts")

// Conn is one open connection. Any goroutine may send; what many of them append
// within one write of the one before leaves in a single write.
type Conn struct {
	nc     net.Conn
	peer   Hello
	minor  uint8
	lz4    bool
	limit  int // largest body that the peer accepts
	mine   int // largest body that we accept
	heard  atomic.Int64
	opened time.Time

	mu    sync.Mutex // guards the following, between Begin and End too
	out   []byte     // frames that wait for the writer
	spare []byte     // the writer's other buffer
	start int        // in out, of the frame being built
	comp  compressor
	ended bool

	wake chan struct{} // tells the writer that out is not empty
}

func newConn(nc net.Conn, mine, theirs Hello) *Conn {
	c := &Conn{
		nc:     nc,
		peer:   theirs,
		minor:  min(mine.Minor, theirs.Minor),
		lz4:    mine.Features&theirs.Features&FeatureLZ4 != 0,
		limit:  int(min(theirs.MaxFrame, MaxFrame)),
		mine:   int(min(mine.MaxFrame, MaxFrame)),
		opened: time.Now(),
		wake:   make(chan struct{}, 1),
	}
	return c
}

// Peer is what the other side said of itself.
func (c *Conn) Peer() Hello { return c.peer }

// Minor is the minor version that both sides speak.
func (c *Conn) Minor() uint8 { return c.minor }

// Begin starts a frame and locks the connection for building it: append the body
// to the returned slice and hand it to End at once.
func (c *Conn) Begin(kind Kind) []byte {
	c.mu.Lock()
	c.start = len(c.out)
	return append(c.out, 0, 0, 0, 0, byte(kind), 0, 0, 0)
}

// End finishes the frame that Begin started and leaves it to the writer.
func (c *Conn) End(b []byte, flags Flags) error {
	defer c.mu.Unlock()
	body := b[c.start+headerSize:]
	switch {
	case c.ended:
		return ErrClosed
	case len(body) > c.limit:
		return ErrTooLarge
	case c.start > maxBacklog:
		return ErrBacklog
	}
	if c.lz4 {
		if small := c.comp.try(body); small != nil {
			b = append(b[:c.start+headerSize], small...)
			flags |= FlagCompressed
		}
	}
	binary.LittleEndian.PutUint32(b[c.start:], uint32(len(b)-c.start-headerSize))
	b[c.start+5] = byte(flags)
	c.out = b
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// Send sends one frame with a body that is built already.
func (c *Conn) Send(kind Kind, flags Flags, body []byte) error {
	return c.End(append(c.Begin(kind), body...), flags)
}

// Run reads frames and hands them to handle until ctx ends, the peer says BYE or
// is silent for too long, or anything fails. It answers PING itself. It returns
// why it ended, never nil; after it the connection is closed.
func (c *Conn) Run(ctx context.Context, handle func(Frame) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var writer sync.WaitGroup
	writer.Go(func() { cancel(c.write(ctx)) })
	stop := context.AfterFunc(ctx, func() { _ = c.nc.SetReadDeadline(time.Unix(1, 0)) })
	err := c.read(handle)
	if stop(); ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.Cause(ctx)
	}
	c.bye(err)
	cancel(err)
	writer.Wait()
	c.nc.Close()
	return err
}

// bye tells a peer what it did wrong, and lets nothing follow.
func (c *Conn) bye(why error) {
	_, broken := errors.AsType[*ProtocolError](why)
	_, refused := errors.AsType[*handlerError](why)
	if broken || refused {
		// A closed or backed-up connection cannot be told; that is no new fault.
		_ = c.Send(KindBye, 0, AppendBye(nil, why.Error()))
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
}

// handlerError is an error of the handler, which the peer gets to hear.
type handlerError struct{ error }

func (e *handlerError) Unwrap() error { return e.error }

// write sends what waits until ctx ends, then what is left, and pings a silent peer.
func (c *Conn) write(ctx context.Context) error {
	ticker := time.NewTicker(pingAfter)
	defer ticker.Stop()
	c.heard.Store(int64(time.Since(c.opened)))
	for {
		select {
		case <-c.wake:
			runtime.Gosched() // lets goroutines that are ready add their frames to this write
			if err := c.flush(); err != nil {
				return fmt.Errorf("rpc: write: %w", err)
			}
		case <-ticker.C:
			if err := c.probe(); err != nil {
				return err
			}
		case <-ctx.Done():
			return c.flush()
		}
	}
}

// probe pings a peer that has been silent, and gives up on one that stays so.
func (c *Conn) probe() error {
	silent := time.Since(c.opened) - time.Duration(c.heard.Load())
	if silent >= deadAfter {
		return fmt.Errorf("rpc: the peer has been silent for %v", silent.Round(time.Millisecond))
	}
	if silent >= pingAfter {
		// When it cannot be sent, the silence ends the connection all the same.
		_ = c.Send(KindPing, 0, appendU64(nil, uint64(silent)))
	}
	return nil
}

func (c *Conn) flush() error {
	for {
		c.mu.Lock()
		b := c.out
		if len(b) == 0 {
			c.mu.Unlock()
			return nil
		}
		c.out, c.spare = c.spare[:0], nil
		c.mu.Unlock()
		if err := c.nc.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
			return err
		}
		if _, err := c.nc.Write(b); err != nil {
			return err
		}
		if cap(b) > keepBuffer {
			b = nil
		}
		c.mu.Lock()
		c.spare = b
		c.mu.Unlock()
	}
}

// read hands frames to handle until something fails.
func (c *Conn) read(handle func(Frame) error) error {
	r := newReader(c.nc, c.mine)
	for {
		f, err := r.next()
		if err == nil {
			err = c.dispatch(f, handle)
		}
		if err != nil {
			return err
		}
		if r.fresh {
			c.heard.Store(int64(time.Since(c.opened)))
		}
	}
}

// dispatch answers what belongs to the connection itself and hands on the rest.
func (c *Conn) dispatch(f Frame, handle func(Frame) error) error {
	switch f.Kind {
	case KindPing:
		err := c.Send(KindPong, 0, f.Body)
		if errors.Is(err, ErrBacklog) {
			err = nil
		}
		return err
	case KindPong:
		return nil
	case KindBye:
		reason, err := ParseBye(f.Body)
		if err == nil {
			err = &ByeError{Reason: reason}
		}
		return err
	}
	if f.Kind.Optional() && f.Kind != KindMetrics {
		return nil
	}
	if err := handle(f); err != nil {
		return &handlerError{err}
	}
	return nil
}

// ByeError ends Run when the peer said BYE.
type ByeError struct{ Reason string }

func (e *ByeError) Error() string { return "rpc: the peer closed the connection: " + e.Reason }

// Unexpected is the error of a frame that has no place on this connection.
func Unexpected(f Frame) error {
	return &ProtocolError{Frame: fmt.Sprintf("kind %d", f.Kind), Field: "header", Why: "is not expected here"}
}
