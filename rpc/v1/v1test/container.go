// Package v1test has a version 1 container for tests: it answers with a function
// and misbehaves when told to.
package v1test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	v1 "github.com/topsail-serving/topsail/rpc/v1"
)

// Fault is how a container treats the batches that it reads.
type Fault int32

const (
	None       Fault = iota
	CloseEarly       // closes the connection instead of replying
	Stall            // never replies, and leaves the connection open
	ShortReply       // closes the connection one byte before the end of the reply
	Surplus          // sends one output too many, with the reply
	Garbage          // replies with what some other server would say
)

const garbage = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"

// Container listens on a free port of 127.0.0.1 until its test ends.
type Container struct {
	listener net.Listener
	predict  func(v1.Batch) []float64
	fault    atomic.Int32
	asked    atomic.Int32 // shutdowns

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu
}

// Start starts a container. It calls predict for every batch, from one goroutine
// per connection.
func Start(t testing.TB, predict func(v1.Batch) []float64) *Container {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("v1test: %v", err)
	}
	c := &Container{listener: listener, predict: predict, conns: map[net.Conn]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.accept(ctx, &running) })
	t.Cleanup(func() {
		cancel()
		listener.Close()
		running.Wait()
	})
	return c
}

// Addr is where to dial.
func (c *Container) Addr() string { return c.listener.Addr().String() }

// Misbehave sets how the batches from now on are treated, on all connections.
func (c *Container) Misbehave(f Fault) { c.fault.Store(int32(f)) }

// Shutdowns is how many connections it was asked on to end.
func (c *Container) Shutdowns() int { return int(c.asked.Load()) }

// Connections is how many are open.
func (c *Container) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// End closes all connections and listens no longer, as a process that dies.
func (c *Container) End() {
	c.listener.Close()
	c.Break()
}

// Break closes all connections, as a process that dies and is started anew.
func (c *Container) Break() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.Close()
	}
}

// hold counts a connection until release.
func (c *Container) hold(conn net.Conn) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.conns, conn)
		conn.Close()
	}
}

func (c *Container) accept(ctx context.Context, running *sync.WaitGroup) {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		running.Go(func() {
			defer c.hold(conn)()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			c.serve(conn)
		})
	}
}

// serve answers batches until the connection ends, in whatever way.
func (c *Container) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		batch, err := v1.DecodeBatch(r)
		if err != nil {
			return
		}
		if batch.Format == v1.Shutdown {
			c.asked.Add(1)
			_, _ = conn.Write(binary.LittleEndian.AppendUint32(nil, 1234))
			return
		}
		if !c.answer(conn, batch) {
			return
		}
	}
}

// answer says whether the connection stays open. A reply leaves in one write, so
// that what is wrong with it comes together with the rest.
func (c *Container) answer(conn net.Conn, batch v1.Batch) (open bool) {
	reply := v1.AppendReply(nil, c.predict(batch))
	fault := Fault(c.fault.Load())
	switch fault {
	case CloseEarly:
		return false
	case Stall:
		_, _ = io.Copy(io.Discard, conn) // until either side closes
		return false
	case ShortReply:
		reply = reply[:len(reply)-1]
	case Surplus:
		reply = v1.AppendReply(reply, []float64{0})
	case Garbage:
		reply = []byte(garbage)
	}
	_, err := conn.Write(reply)
	return err == nil && fault != ShortReply && fault != Garbage
}
