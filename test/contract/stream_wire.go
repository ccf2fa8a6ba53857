package contract

import (
	"context"
	"net"
	"sync"
	"time"
)

// Wire makes the connections of a process that may die. The zero value works.
type Wire struct {
	Via func(ctx context.Context, network, addr string) (net.Conn, error) // nil: the network of the machine

	mu     sync.Mutex
	conns  []net.Conn
	cut    bool
	counts bool
	left   int // writes until it is cut, where it counts
}

// Dial makes a connection.
func (w *Wire) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := w.Via
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		conn.Close()
		return nil, net.ErrClosed
	}
	w.conns = append(w.conns, conn)
	return &wireConn{Conn: conn, wire: w}, nil
}

// Cut ends all connections as the end of their process does, and lets no new one come.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, conn := range w.conns {
		conn.Close()
	}
	w.conns = nil
}

// CutAfter lets through as many more writes, and from the last one on nothing comes back.
func (w *Wire) CutAfter(writes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts, w.left = true, writes
	w.countLocked()
}

func (w *Wire) countLocked() {
	if !w.counts || w.left > 0 {
		return
	}
	w.cut = true
	for _, conn := range w.conns {
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // it may just be closed; what was written still goes out
	}
}

func (w *Wire) dead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

// wrote counts a write that has gone out.
func (w *Wire) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
	w.countLocked()
}

type wireConn struct {
	net.Conn
	wire *Wire
}

func (c *wireConn) Write(b []byte) (int, error) {
	if c.wire.dead() {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(b)
	c.wire.wrote()
	return n, err
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.wire.dead() {
		return 0, net.ErrClosed
	}
	return n, err
}
