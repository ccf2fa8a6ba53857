// Package pipes is a network in memory, for tests in bubbles of testing/synctest: who waits for a socket there stops time.
package pipes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Network is one; its zero value has no listeners.
type Network struct {
	mu        sync.Mutex // guards the following
	listeners map[string]*listener
	last      int
}

// Listen is a listener at an address of its own.
func (n *Network) Listen() net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	n.last++
	l := &listener{network: n, addr: address(fmt.Sprintf("127.0.0.1:%d", 10000+n.last)), dialled: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[string(l.addr)] = l
	return l
}

// Dial connects to a listener: an error, when there is none at the address.
func (n *Network) Dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "pipe", Addr: address(addr), Err: net.ErrClosed}
	if l == nil {
		return nil, refused
	}
	near, far := net.Pipe()
	select {
	case l.dialled <- far:
		return near, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Serve has an HTTP server answer until the test ends, and returns its URL.
func (n *Network) Serve(t testing.TB, handler http.Handler) string {
	ln, server := n.Listen(), &http.Server{Handler: handler}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(ln) })
	t.Cleanup(func() {
		server.Close()
		running.Wait()
	})
	return "http://" + ln.Addr().String()
}

// Client is an HTTP client on the network. It keeps no connections, which would outlive a bubble.
func (n *Network) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, addr string) (net.Conn, error) { return n.Dial(ctx, addr) },
	}}
}

type listener struct {
	network *Network
	addr    address
	dialled chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialled:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, string(l.addr))
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

type address string

func (address) Network() string  { return "pipe" }
func (a address) String() string { return string(a) }
