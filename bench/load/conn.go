package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"
)

// target is where requests go.
type target struct {
	addr string
	head string // of a request, up to the value of its content length
}

func parseTarget(text string) (target, error) {
	u, err := url.Parse(text)
	if err != nil {
		return target{}, fmt.Errorf("load: %w", err)
	}
	if u.Scheme != "http" || u.Host == "" {
		return target{}, fmt.Errorf("load: url %q must be http://host:port/path", text)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), "80")
	}
	head := "POST " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host +
		"\r\nContent-Type: application/json\r\nContent-Length: "
	return target{addr: addr, head: head}, nil
}

// conn is a keep-alive connection that is dialled again when it has failed. It is
// written by hand because the generator shares its cores with the server.
type conn struct {
	target
	nc      net.Conn // nil when there is none
	r       *bufio.Reader
	unwatch func() bool
	request []byte // reused
	body    []byte // reused
}

func newConn(t target) *conn { return &conn{target: t, r: bufio.NewReaderSize(nil, maxLine)} }

// dial connects; the end of ctx closes the connection.
func (c *conn) dial(ctx context.Context, deadline time.Time) error {
	dialer := net.Dialer{Deadline: deadline}
	nc, err := dialer.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return err
	}
	c.nc = nc
	c.r.Reset(nc)
	c.unwatch = context.AfterFunc(ctx, func() { nc.Close() })
	return nil
}

func (c *conn) close() {
	if c.nc != nil {
		c.unwatch()
		c.nc.Close()
		c.nc = nil
	}
}

// post sends one request and reads the reply, which is valid until the next.
func (c *conn) post(ctx context.Context, body []byte, deadline time.Time) (message, error) {
	if c.nc == nil {
		if err := c.dial(ctx, deadline); err != nil {
			return message{}, err
		}
	}
	m, err := c.exchange(body, deadline)
	if err != nil || m.closes {
		c.close()
	}
	return m, err
}

func (c *conn) exchange(body []byte, deadline time.Time) (message, error) {
	if err := c.nc.SetDeadline(deadline); err != nil {
		return message{}, err
	}
	c.request = append(c.request[:0], c.head...)
	c.request = strconv.AppendInt(c.request, int64(len(body)), 10)
	c.request = append(c.request, "\r\n\r\n"...)
	c.request = append(c.request, body...)
	if _, err := c.nc.Write(c.request); err != nil {
		return message{}, err
	}
	m, err := readMessage(c.r, c.body)
	c.body = m.body
	if err == nil && m.status == 0 {
		err = fmt.Errorf("%w: no status", errHTTP)
	}
	return m, err
}

// kindOf sorts the error of a request.
func kindOf(ctx context.Context, err error) ErrorKind {
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil:
		return Canceled
	case errors.Is(err, os.ErrDeadlineExceeded):
		return TimedOut
	case isOp && op.Op == "dial":
		return NotConnected
	case errors.Is(err, errHTTP):
		return NotHTTP
	case errors.Is(err, syscall.ECONNRESET):
		return Reset
	}
	return Closed
}
