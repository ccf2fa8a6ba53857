package rpc

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// Local is the connections of a process with itself. They are opened like others, and from then on each side reads what
// the other has sent where that is: without a copy, a system call, or a goroutine that writes. The zero value is ready.
type Local struct {
	mu        sync.Mutex // guards the following
	listeners map[string]*localListener
	made      int
}

// Listen makes a listener, whose address Dial knows until it is closed.
func (l *Local) Listen() net.Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	ln := &localListener{of: l, addr: localAddr("local:" + strconv.Itoa(l.made)), dialled: make(chan net.Conn), closed: make(chan struct{})}
	if l.listeners == nil {
		l.listeners = map[string]*localListener{}
	}
	l.listeners[ln.addr.String()] = ln
	return ln
}

func (l *Local) listener(addr string) *localListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listeners[addr]
}

// Dial connects to a listener, when it accepts.
func (l *Local) Dial(ctx context.Context, addr string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "local", Addr: localAddr(addr), Err: syscall.ECONNREFUSED}
	ln := l.listener(addr)
	if ln == nil {
		return nil, refused
	}
	a, b := net.Pipe()
	mine, theirs := newLocalEnd(a), newLocalEnd(b)
	mine.other, theirs.other = theirs, mine
	select {
	case ln.dialled <- theirs:
		return mine, nil
	case <-ln.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Before dials what is in this process, and the rest by next.
func (l *Local) Before(next func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		if l.listener(addr) != nil {
			return l.Dial(ctx, addr)
		}
		return next(ctx, addr)
	}
}

type localAddr string

func (a localAddr) Network() string { return "local" }
func (a localAddr) String() string  { return string(a) }

type localListener struct {
	of      *Local
	addr    localAddr
	dialled chan net.Conn
	closing sync.Once
	closed  chan struct{}
}

func (ln *localListener) Accept() (net.Conn, error) {
	select {
	case nc := <-ln.dialled:
		return nc, nil
	case <-ln.closed:
		return nil, net.ErrClosed
	}
}

func (ln *localListener) Close() error {
	ln.closing.Do(func() {
		ln.of.mu.Lock()
		defer ln.of.mu.Unlock()
		delete(ln.of.listeners, ln.addr.String())
		close(ln.closed)
	})
	return nil
}

func (ln *localListener) Addr() net.Addr { return ln.addr }

// localEnd is one side of a connection. Its bytes are for the handshake.
type localEnd struct {
	net.Conn // of a net.Pipe
	other    *localEnd
	conn     *Conn         // once open is closed
	open     chan struct{} // closed when the handshake is over
	closing  sync.Once
	closed   chan struct{}
}

func newLocalEnd(nc net.Conn) *localEnd {
	return &localEnd{Conn: nc, open: make(chan struct{}), closed: make(chan struct{})}
}

func (e *localEnd) Close() error {
	e.closing.Do(func() { close(e.closed) })
	return e.Conn.Close()
}

// runLocal is Run on a connection of the process with itself.
func (c *Conn) runLocal(ctx context.Context, handle func(Frame) error) error {
	err := c.readLocal(ctx, handle)
	c.bye(err, ctx.Err() != nil)
	c.nc.Close() // what was sent, the peer takes all the same
	return err
}

func (c *Conn) readLocal(ctx context.Context, handle func(Frame) error) error {
	other := c.local.other
	select {
	case <-other.open:
	case <-other.closed: // perhaps after it was opened
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var sent chan struct{} // nil: nothing ever is
	select {
	case <-other.open:
		sent = other.conn.wake
	default:
	}
	for {
		select {
		case <-sent:
			if err := c.receive(other.conn, handle); err != nil {
				return err
			}
		case <-other.closed:
			var err error
			if sent != nil {
				err = c.receive(other.conn, handle)
			}
			return cmp.Or(err, fmt.Errorf("rpc: read: %w", io.EOF))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// receive handles the frames that wait at the peer.
func (c *Conn) receive(peer *Conn, handle func(Frame) error) error {
	b, payloads := peer.takeAll()
	defer peer.giveBack(b)
	for at := 0; at < len(b); {
		size, kind, flags := parseHeader(b[at:])
		end, own := at+headerSize+int(size), 0
		for own < len(payloads) && payloads[own].frame == at {
			end -= len(payloads[own].data)
			own++
		}
		f := Frame{Kind: kind, Flags: flags, Body: b[at+headerSize : end : end], apart: payloads[:own], at: at + headerSize}
		if err := c.dispatch(f, handle); err != nil {
			return err
		}
		at, payloads = end, payloads[own:]
	}
	if c.paused != nil {
		c.paused()
	}
	return nil
}
