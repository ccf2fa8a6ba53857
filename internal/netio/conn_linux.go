package netio

import (
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// Wrap gives a TCP connection that is read and written as the package says; any
// other connection is returned as it is. The caller owns the result in place of nc.
func Wrap(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nc
	}
	c := &conn{TCPConn: tcp, raw: raw}
	c.in.try, c.out.try, c.once.try = c.in.read, c.out.write, c.once.writeOnce
	return c
}

// WriteNow writes as much of b as nc takes without waiting, and returns how much that was: nothing where nc
// was not made by Wrap, where its deadline has passed, or where writing fails, which the next Write will, too.
func WriteNow(nc net.Conn, b []byte) int {
	c, ok := nc.(*conn)
	if !ok || len(b) == 0 {
		return 0
	}
	n, _ := c.once.run(b, c.raw.Write)
	return n
}

// conn is a TCP connection. What it does not do itself is the net package's.
type conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
	once    transfer // of WriteNow
}

// transfer is a read or a write on its way.
type transfer struct {
	mu  sync.Mutex         // held for the whole of it
	try func(uintptr) bool // a method of its own, kept because taking its value allocates

	b   []byte
	n   int // bytes of b that are done
	err error
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := c.in.run(b, c.raw.Read)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, c.failed("read", err)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.run(b, c.raw.Write)
	return n, c.failed("write", err)
}

// run tries until it is done, and waits in between, until the deadline or the end of
// the connection.
func (t *transfer) run(b []byte, wait func(func(uintptr) bool) error) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b, t.n, t.err = b, 0, nil
	err := wait(t.try)
	t.b = nil
	return t.n, cmp.Or(err, t.err)
}

// read reads once. It says whether there is anything to say.
func (t *transfer) read(fd uintptr) bool {
	n, errno := read(fd, t.b)
	if errno == syscall.EAGAIN {
		return false
	}
	t.n, t.err = n, failure("read", errno)
	return true
}

// write writes as much as there is room for. It says whether that was all.
func (t *transfer) write(fd uintptr) bool {
	for t.n < len(t.b) {
		n, errno := write(fd, t.b[t.n:])
		if errno == syscall.EAGAIN {
			return false
		}
		if t.err = failure("write", errno); t.err != nil {
			return true
		}
		t.n += n
	}
	return true
}

// writeOnce writes as much as there is room for.
func (t *transfer) writeOnce(fd uintptr) bool {
	t.write(fd)
	return true
}

func failure(name string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return os.NewSyscallError(name, errno)
}

// failed puts an error into the words of the net package.
func (c *conn) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	if raw, ok := errors.AsType[*net.OpError](err); ok { // a raw-read or raw-write
		err = raw.Err
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
