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

	"github.com/topsail-serving/topsail/internal/netio"
)

const (
	keepBuffer  = 1 << 20 // larger buffers are given back when the peer is silent
	keepInUse   = 8 << 20 // and still larger ones once they are empty: fresh memory costs more than writing to it
	maxBacklog  = 128 << 20
	writeWithin = 5 * time.Second        // and writeByte for each byte: a peer that takes longer is gone
	leaveWithin = 500 * time.Millisecond // when we are the one that leaves
	writeByte   = time.Microsecond       // so a slow peer has to take 1 MB/s
	writeAtOnce = 64 << 10               // bytes: more is for the writer, which others do not wait for
	leaveApart  = 64 << 10               // payloads of more are sent from where they are
	copyAtOnce  = 1 << 20                // bytes for memory that is shared: more is for the writer
	loneAfter   = 200 * time.Microsecond // between frames, twice in a row: none is likely to be added to this one
	pingAfter   = time.Second            // of silence
	deadAfter   = 5 * time.Second        // of silence
)

// ErrClosed is returned by End on a connection that has ended.
var ErrClosed = errors.New("rpc: the connection is closed")

// ErrBacklog is returned by End when the peer does not read fast enough and
// maxBacklog bytes wait for it already; the frame was not sent.
var ErrBacklog = errors.New("rpc: the send buffer of the connection is full")

// ErrTooLarge is returned by End for a frame above the peer's limit, not sent.
var ErrTooLarge = errors.New("rpc: the frame is larger than the peer accepts")

// Conn is one open connection. Any goroutine may send; what many of them append
// within one write of the one before leaves in a single write. What has a Conn
// must call Run, once: it writes what is sent, and closes the connection.
type Conn struct {
	nc     net.Conn
	peer   Hello
	minor  uint8
	lz4    bool // compression was agreed on, so the peer may use it
	limit  int  // largest body that the peer accepts
	mine   int  // largest body that we accept
	heard  atomic.Int64
	opened time.Time
	silent func(time.Duration) error // see BearSilence; nil: deadAfter ends the connection
	paused func()                    // see OnPause; may be nil
	alone  bool                      // see SendAlone
	local  *localEnd                 // its end of a connection within the process; else nil
	shares bool                      // large frames are to go into memory that both share, which is not made yet; of the writer

	mu      sync.Mutex  // guards the following, between Begin and End too
	out     []byte      // frames that wait for the writer, without the payloads that are apart
	spare   []byte      // the writer's other buffer
	apart   []apart     // in the order of out
	weight  int         // bytes in apart
	before  backlog     // what waited when the frame being built was begun
	writing bool        // the writer writes
	sent    int64       // when the last frame was, in nanoseconds since opened
	gap     int64       // in nanoseconds, between that and the one before
	comp    *compressor // nil: nothing is to be compressed
	ended   bool        // nothing more may be sent
	last    time.Time   // once Run ends: when the last write must be done
	memory  *memory     // shared with the peer; nil: none

	wake chan struct{} // tells the writer that out is not empty
}

func newConn(nc net.Conn, mine, theirs Hello) *Conn {
	c := &Conn{
		nc:     netio.Wrap(nc),
		peer:   theirs,
		minor:  min(mine.Minor, theirs.Minor),
		shares: mine.Role == RoleSidecar && mine.Features&theirs.Features&FeatureMemory != 0 && sameMachine(nc),
		lz4:    mine.Features&theirs.Features&FeatureLZ4 != 0,
		limit:  int(min(theirs.MaxFrame, MaxFrame)),
		mine:   int(min(mine.MaxFrame, MaxFrame)),
		opened: time.Now(),
		wake:   make(chan struct{}, 1),
	}
	if end, ok := nc.(*localEnd); ok {
		c.local, end.conn = end, c
		close(end.open)
	} else if c.lz4 && !sameMachine(nc) {
		c.comp = new(compressor)
	}
	return c
}

// sameMachine says whether the peer is on this machine, where bytes cost less than
// compressing them. The peer may compress all the same.
func sameMachine(nc net.Conn) bool {
	addr, ok := nc.RemoteAddr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// Peer is what the other side said of itself.
func (c *Conn) Peer() Hello { return c.peer }

// Minor is the minor version that both sides speak.
func (c *Conn) Minor() uint8 { return c.minor }

// BearSilence has judge say each second for how long the peer may have been silent: its
// error ends the connection, instead of five seconds of silence. It is for a peer that
// may be kept from answering by its own work. Call it before Run.
func (c *Conn) BearSilence(judge func(time.Duration) error) { c.silent = judge }

// OnPause has paused called each time that all frames that came together have been handled. Call it before Run.
func (c *Conn) OnPause(paused func()) { c.paused = paused }

// SendAlone says that frames are sent one at a time, so that none has to wait for others to leave with it. Call it
// before Run.
func (c *Conn) SendAlone() { c.alone = true }

// Begin starts a frame and locks the connection for building it: append the body
// to the returned slice and hand it to End at once.
func (c *Conn) Begin(kind Kind) []byte {
	c.mu.Lock()
	c.before = backlog{len(c.out), len(c.apart), c.weight}
	return append(c.out, 0, 0, 0, 0, byte(kind), 0, 0, 0)
}

// End finishes the frame that Begin started, and writes it if it comes alone, or leaves it to the writer, which
// takes many at a time. When it returns an error, nothing of the frame is sent; the connection lives on. Otherwise the
// payloads that AppendAsk and AppendAskInput were given must not change any more.
func (c *Conn) End(b []byte, flags Flags) error {
	defer c.mu.Unlock()
	start := c.before.out
	size := len(b) - start - headerSize + c.weight - c.before.weight
	if err := c.refusal(size); err != nil {
		clear(c.apart[c.before.apart:])
		c.apart, c.weight = c.apart[:c.before.apart], c.before.weight
		return err
	}
	if c.comp != nil {
		if small := c.comp.try(b[start+headerSize:]); small != nil {
			b = append(b[:start+headerSize], small...)
			size, flags = len(small), flags|FlagCompressed
		}
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(size))
	b[start+5] = byte(flags)
	c.out = b
	c.ended = Kind(b[start+4]) == KindBye // which is the last frame
	now := int64(time.Since(c.opened))
	gap := now - c.sent
	lone := c.local == nil && (c.alone || min(gap, c.gap) > int64(loneAfter))
	c.sent, c.gap = now, gap
	if lone = lone && start == 0 && !c.writing; lone && len(c.apart) > 0 && c.weight <= copyAtOnce {
		if slot := c.slot(size); slot >= 0 {
			c.out = AppendFrame(b[:0], KindShared, 0, c.put(slot, b, 0, c.apart))
			clear(c.apart)
			c.apart, c.weight = c.apart[:0], 0
		}
	}
	if lone && len(c.out)+c.weight <= writeAtOnce {
		c.writeNow()
	} else {
		c.wakeWriter()
	}
	return nil
}

// refusal is why a frame of so many bytes cannot be sent, or nil. c.mu is held.
func (c *Conn) refusal(size int) error {
	switch {
	case c.ended:
		return ErrClosed
	case size > c.limit:
		return ErrTooLarge
	case c.before.bytes() > maxBacklog:
		return ErrBacklog
	}
	return nil
}

func (c *Conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// writeNow writes the one frame that waits, without waiting itself, and leaves to the writer what does not go
// out at once: all of it once the deadline of the writer's last write has passed, which its next one moves. c.mu is held.
func (c *Conn) writeNow() {
	n := netio.WriteNow(c.nc, c.out)
	if n < len(c.out) {
		c.out = c.out[:copy(c.out, c.out[n:])]
		c.wakeWriter()
		return
	}
	if c.out = c.out[:0]; cap(c.out) > keepInUse {
		c.out = nil
	}
}

// Send sends one frame with a body that is built already.
func (c *Conn) Send(kind Kind, flags Flags, body []byte) error {
	return c.End(append(c.Begin(kind), body...), flags)
}

// Run reads frames and hands them to handle until owner ends, the peer says BYE or
// is silent for too long, or anything fails. It answers PING itself. It returns
// why it ended, never nil; after it the connection is closed, and every frame that
// End took without an error has been written, unless writing is what failed.
//
// While handle runs, nothing is read and the peer counts as silent, so it must not
// block. An error of handle ends Run, and the peer is told its text.
func (c *Conn) Run(owner context.Context, handle func(Frame) error) error {
	if c.local != nil {
		return c.runLocal(owner, handle)
	}
	ctx, cancel := context.WithCancelCause(owner)
	var writer sync.WaitGroup
	var lost error
	writer.Go(func() { lost = c.write(ctx); cancel(lost) })
	stop := context.AfterFunc(ctx, func() { _ = c.nc.SetReadDeadline(time.Unix(1, 0)) })
	err := c.read(handle)
	if stop(); ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.Cause(ctx)
	}
	c.bye(err, owner.Err() != nil)
	cancel(err)
	writer.Wait()
	if lost == nil {
		_ = c.flush() // what was sent since the writer ended; that Run ends is known already
	}
	c.endMemory()
	c.nc.Close()
	return err
}

// bye tells a peer what it did wrong, or that this side leaves, and ends the sending: what is
// queued is still sent, within a bounded time.
func (c *Conn) bye(why error, leaving bool) {
	_, broken := errors.AsType[*ProtocolError](why)
	_, refused := errors.AsType[*handlerError](why)
	if broken || refused || leaving {
		// A closed or backed-up connection cannot be told; that is not a new fault.
		_ = c.Send(KindBye, 0, AppendBye(nil, reason(why, leaving)))
	}
	within := writeWithin
	if leaving {
		within = leaveWithin
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.last = true, time.Now().Add(within)
	_ = c.nc.SetWriteDeadline(c.last) // for the write in progress too
}

func reason(why error, leaving bool) string {
	if leaving {
		return "stopping"
	}
	return why.Error()
}

// handlerError is an error of the handler, which the peer gets to hear.
type handlerError struct{ error }

func (e *handlerError) Unwrap() error { return e.error }

// write sends what waits, and pings a silent peer, until ctx ends.
func (c *Conn) write(ctx context.Context) error {
	ticker := time.NewTicker(pingAfter)
	defer ticker.Stop()
	c.heard.Store(int64(time.Since(c.opened)))
	for {
		select {
		case <-c.wake:
			runtime.Gosched() // lets goroutines that are ready add their frames to this write
			if err := c.flush(); err != nil {
				return err
			}
		case <-ticker.C:
			c.forget()
			if err := c.probe(); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// probe pings a peer that has been silent, and gives up on one that stays so.
func (c *Conn) probe() error {
	silent := time.Since(c.opened) - time.Duration(c.heard.Load())
	if c.silent != nil {
		if err := c.silent(silent); err != nil {
			return err
		}
	} else if silent >= deadAfter {
		return fmt.Errorf("rpc: the peer has been silent for %v", silent.Round(time.Millisecond))
	}
	if silent >= pingAfter {
		c.shrink()
		// When it cannot be sent, the silence ends the connection all the same.
		_ = c.Send(KindPing, 0, appendU64(nil, uint64(silent)))
	}
	return nil
}

// shrink lets go of buffers that large frames have left behind.
func (c *Conn) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap(c.spare) > keepBuffer {
		c.spare = nil
	}
	if len(c.out) == 0 && cap(c.out) > keepBuffer {
		c.out = nil
	}
}

// flush writes what waits. What is sent meanwhile has woken the writer again.
func (c *Conn) flush() error {
	b, payloads, err := c.take()
	if err == nil && len(b) > 0 {
		err = c.writeOut(b, payloads)
	}
	if err != nil {
		return fmt.Errorf("rpc: write: %w", err)
	}
	c.giveBack(b)
	return nil
}

// take takes the frames that wait, and sets the deadline for writing them: under
// the lock, so that it cannot undo the one that bye sets.
func (c *Conn) take() ([]byte, []apart, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.out) == 0 {
		return nil, nil, nil
	}
	deadline := c.last
	if deadline.IsZero() {
		deadline = time.Now().Add(writeWithin + time.Duration(len(c.out)+c.weight)*writeByte)
	}
	b, payloads := c.handOver()
	return b, payloads, c.nc.SetWriteDeadline(deadline)
}

// takeAll takes the frames that wait, for the other side of a connection within the process.
func (c *Conn) takeAll() ([]byte, []apart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handOver()
}

// handOver takes the frames that wait. c.mu is held.
func (c *Conn) handOver() ([]byte, []apart) {
	b, payloads := c.out, c.apart
	c.out, c.spare, c.writing = c.spare[:0], nil, len(b) > 0
	c.apart, c.weight = nil, 0
	return b, payloads
}

// giveBack gives back the buffer of frames that were taken, to be used again.
func (c *Conn) giveBack(b []byte) {
	if len(b) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	if cap(b) <= keepInUse {
		c.spare = b
	}
}

// hearing reads from the peer and notes when it was last heard, whether or not
// that makes a whole frame.
type hearing struct{ c *Conn }

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.c.nc.Read(b)
	if n > 0 {
		h.c.heard.Store(int64(time.Since(h.c.opened)))
	}
	return n, err
}

// read hands frames to handle until something fails.
func (c *Conn) read(handle func(Frame) error) error {
	r := newReader(hearing{c}, c.mine, c.lz4)
	for {
		f, err := r.next()
		if err == nil {
			err = c.dispatch(f, handle)
		}
		if err != nil {
			return err
		}
		if c.paused != nil && !r.more() {
			c.paused()
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
	case KindFree:
		return c.freed(f.Body)
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

// Unexpected is the error of a frame that has no place on this connection, or nil
// when its kind is one that may be skipped.
func Unexpected(f Frame) error {
	if f.Kind.Optional() {
		return nil
	}
	return &ProtocolError{Frame: fmt.Sprintf("kind %d", f.Kind), Field: "header", Why: "is not expected here"}
}
