package sidecar

import (
	"io"
	"net"
	"sync"
)

// pipes is a listener whose connections are pipes, so that a whole sidecar runs
// in a synctest bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, io.EOF // a listener of another kind need not say net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// dial gives nil when nobody listens any more.
func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near
	case <-p.closed:
		return nil
	}
}
