package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/connlimit"
)

// conn is one connection of a client.
type conn struct {
	net.Conn
	place  *connlimit.Place
	used   atomic.Bool // something has come from the client
	linger atomic.Bool // the client may be sending still when it is refused

	lease   budget.Lease // of the current request, and its answer
	host    string       // by which it was called last, and may be
	kept    []byte       // for the next body; at most keepBytes
	large   []byte       // the current body, if it is larger
	came    int          // bytes of the last body that was not small
	bodies  *sync.Pool   // of large ones of all connections, *[]byte; nil: they are not kept
	headers headers      // of the current request
	unread  bool         // the body of the current request has not been read
	slot    bool         // its body is heavy, and may be read
	room    int          // that was taken for its answer

	request   present     // the current one
	streaming atomic.Bool // an answer is written as it comes, and each write has its own time

	rest      []byte // was read behind a request, and belongs to those after it; only for Read
	pipelined int    // times that there was some; only for Read
	body      int    // bytes to come that are of a body; only for who reads it, and Read

	mu     sync.Mutex // guards the following
	wanted time.Time  // the read deadline
	leave  time.Time  // the write deadline
	set    time.Time  // the read deadline that the connection has, which may be earlier
	leaves time.Time  // the write deadline that the connection has, which may be later
}

// finish gives back what the request that has ended took.
func (c *conn) finish() {
	c.lease.Release()
	if large := c.large; large != nil && c.bodies != nil {
		c.bodies.Put(&large)
	}
	c.large = nil
}

// SetReadDeadline sets it lazily: fasthttp moves the deadline twice for each
// request, nearly always to a later time. One that is too early costs nothing but
// another look when it passes.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = t
	if !c.set.IsZero() && (t.IsZero() || !t.Before(c.set)) {
		return nil
	}
	c.set = t
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Read ends before the beginning of another request. fasthttp sends its answers when it
// has read nothing beyond them, and else keeps them until the next request is answered,
// however long that takes.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.rest) > 0 {
		return c.readRest(b), nil
	}
	n, err := c.receive(b)
	at := min(n, c.body)
	if c.body -= at; at == n {
		return n, err
	}
	if at == 0 {
		at = nextRequest(b[:n])
	}
	if at > 0 {
		c.rest = bytes.Clone(b[at:n])
		return at, nil // an error is returned again
	}
	return n, err
}

const (
	// pipelineBurst requests of a pipeline are read in a row, and then none for pipelinePause. Go looks for what has
	// come on other connections when it has nothing else to run, or every 10 ms: some pipelines alone would make every
	// step of a query wait for that.
	pipelineBurst = 8
	pipelinePause = time.Millisecond
)

func (c *conn) readRest(b []byte) int {
	if c.pipelined++; c.pipelined%pipelineBurst == 0 {
		time.Sleep(pipelinePause)
	}
	next := c.rest[:min(len(b), len(c.rest))]
	if at := nextRequest(next); at > 0 {
		next = next[:at]
	}
	n := copy(b, next)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
	}
	return n
}

func (c *conn) receive(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if n > 0 && !c.used.Load() {
			c.used.Store(true)
		}
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.early() {
			if n == 0 && c.place.Waits() && errors.Is(err, syscall.ECONNRESET) {
				return 0, io.EOF // fasthttp would answer a reset, as a request that is wrong
			}
			return n, err
		}
	}
}

// leastWriteRate is within what time a client has to take each of the pieces of a large answer.
const (
	writePiece     = 64 << 10
	leastWriteRate = 2 * time.Second
)

// lateness is how much later than wanted the write deadline may be.
const lateness = 100 * time.Millisecond

// SetWriteDeadline sets the time by which an answer must have left, lazily as well: to a later time, which is good for the
// answers that follow soon.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave = t
	if !t.IsZero() && !c.leaves.Before(t) && c.leaves.Sub(t) <= lateness {
		return nil
	}
	if !t.IsZero() {
		t = t.Add(lateness)
	}
	return c.setWrite(t)
}

// setWrite sets the write deadline that the connection has. c.mu is held.
func (c *conn) setWrite(t time.Time) error {
	c.leaves = t
	return c.Conn.SetWriteDeadline(t)
}

// Write writes a large answer in pieces, each of which the client has to take within some
// time.
func (c *conn) Write(b []byte) (n int, err error) {
	if c.streaming.Load() {
		c.mu.Lock()
		err := c.setWrite(time.Now().Add(writeEventWithin))
		c.mu.Unlock()
		if err != nil {
			return 0, err
		}
		return c.Conn.Write(b)
	}
	if len(b) <= writePiece {
		return c.Conn.Write(b)
	}
	for n < len(b) {
		if err := c.extendDeadline(); err != nil {
			return n, err
		}
		written, err := c.Conn.Write(b[n:min(n+writePiece, len(b))])
		if n += written; err != nil {
			return n, err
		}
	}
	return n, nil
}

// extendDeadline gives the next piece its time.
func (c *conn) extendDeadline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := time.Now().Add(leastWriteRate)
	if !c.leave.IsZero() && c.leave.Before(due) {
		due = c.leave
	}
	return c.setWrite(due)
}

// nextRequest is where the first request line in b begins that b does not begin with, or
// 0. What only looks like one, in a body, costs another look at what was read.
func nextRequest(b []byte) int {
	version := []byte(" HTTP/1.")
	for from := 0; ; {
		at := bytes.Index(b[from:], version)
		if at < 0 {
			return 0
		}
		at += from
		from = at + len(version)
		start := bytes.LastIndexByte(b[:at], ' ') // before the target
		for start > 0 && 'A' <= b[start-1] && b[start-1] <= 'Z' {
			start--
		}
		if start > 0 {
			return start
		}
	}
}

// early says whether the deadline that has passed was not the wanted one, and sets
// that.
func (c *conn) early() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted.Equal(c.set) {
		return false
	}
	c.set = c.wanted
	return c.Conn.SetReadDeadline(c.set) == nil
}

// lingerTime and lingerBytes bound what is read for nothing after a refusal.
const (
	lingerTime  = time.Second
	lingerBytes = 64 << 20
)

// Close closes the connection. If bytes that were not read were left at that
// moment, the kernel would reset it, and the refusal that we wrote might be lost
// before the client sees it; so a refused client is listened to for a while.
func (c *conn) Close() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if ok && c.linger.Swap(false) && half.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	return c.Conn.Close()
}

// NetConn is the connection beneath; see connlimit.Cut.
func (c *conn) NetConn() net.Conn { return c.Conn }

// lingering wraps fasthttp's handler of requests that it could not read.
func lingering(next func(*fasthttp.RequestCtx, error)) func(*fasthttp.RequestCtx, error) {
	return func(rc *fasthttp.RequestCtx, err error) {
		if c, ok := rc.Conn().(*conn); ok {
			c.linger.Store(true)
			c.headers.read(&rc.Request.Header)
		}
		next(rc, err)
	}
}
