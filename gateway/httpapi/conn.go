package httpapi

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// conn is one connection of a client.
type conn struct {
	net.Conn
	used   atomic.Bool // something has come from the client
	linger atomic.Bool // the client may be sending still when it is refused
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.used.Load() {
		c.used.Store(true)
	}
	return n, err
}

// lingerTime and lingerBytes bound what is read for nothing after a refusal.
const (
	lingerTime  = time.Second
	lingerBytes = 64 << 20
)

// Close closes the connection. If bytes that nobody has read were left at that
// moment, the kernel would reset it, and the refusal that we wrote might be lost
// before the client sees it; so a refused client is listened to for a while.
func (c *conn) Close() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if ok && c.linger.Swap(false) && half.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	return c.Conn.Close()
}

// cut ends the connection without a farewell. TLS would want to send one, and
// wait seconds for a client that does not read.
func (c *conn) cut() {
	raw := c.Conn
	if secure, ok := raw.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	raw.Close()
}

// lingering wraps fasthttp's handler of requests that it could not read.
func lingering(next func(*fasthttp.RequestCtx, error)) func(*fasthttp.RequestCtx, error) {
	return func(rc *fasthttp.RequestCtx, err error) {
		if c, ok := rc.Conn().(*conn); ok {
			c.linger.Store(true)
		}
		next(rc, err)
	}
}
