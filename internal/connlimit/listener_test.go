package connlimit

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// crowd comes to a listener, a second after one another.
type crowd struct {
	*Listener[net.Conn]
	coming chan any // a net.Conn, or the error of Accept
	closed map[Reason]int
}

func (c *crowd) Accept() (net.Conn, error) {
	switch next := (<-c.coming).(type) {
	case error:
		return nil, next
	default:
		return next.(net.Conn), nil
	}
}

func (c *crowd) Addr() net.Addr { return nil }
func (c *crowd) Close() error   { return nil }

// come accepts the client of an address, unless it is refused, and returns what both have.
func (c *crowd) come(t *testing.T, addr string) (ours, theirs net.Conn) {
	t.Helper()
	time.Sleep(time.Second)
	inner, outer := net.Pipe()
	from := fromAddress{inner, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 1))}
	c.coming <- &from
	c.coming <- io.EOF // what comes next, if it is refused
	accepted, err := c.Listener.Accept()
	if err == nil {
		<-c.coming
	} else if err != io.EOF {
		t.Fatal(err)
	}
	return accepted, outer
}

type fromAddress struct {
	net.Conn
	addr net.Addr
}

func (f *fromAddress) RemoteAddr() net.Addr { return f.addr }

func newCrowd(config Config) *crowd {
	c := &crowd{coming: make(chan any, 4), closed: map[Reason]int{}}
	config.Closed, config.Log = func(why Reason) { c.closed[why]++ }, slog.New(slog.DiscardHandler)
	c.Listener = New(c, config, func(nc net.Conn, _ *Place) net.Conn { return nc })
	return c
}

func (c *crowd) expect(t *testing.T, idle, full, address int) {
	t.Helper()
	if c.closed[Idle] != idle || c.closed[Full] != full || c.closed[Address] != address {
		t.Errorf("closed: %v, want %d idle, %d full and %d of an address", c.closed, idle, full, address)
	}
}

// cut says whether the client's connection has been ended.
func cut(t *testing.T, theirs net.Conn) bool {
	t.Helper()
	_ = theirs.SetReadDeadline(time.Now().Add(time.Millisecond)) // a pipe that is cut has none
	_, err := theirs.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// A connection beyond the limit takes the place of the one that has waited longest for a
// request; one that is being answered stays.
func TestTheLongestWaitingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(Config{Most: 3, Spare: 2})
		busy, first := c.come(t, "10.0.0.1")
		c.Place(busy).Busy()
		silent, second := c.come(t, "10.0.0.1")
		idle, third := c.come(t, "10.0.0.1")
		c.Place(idle).Wait()
		for _, oldest := range []struct{ ours, theirs net.Conn }{{silent, second}, {idle, third}} {
			if ours, _ := c.come(t, "10.0.0.1"); c.Place(ours).Spare {
				t.Error("it is one too many, though others wait")
			}
			if !cut(t, oldest.theirs) {
				t.Error("the one that waited longest goes on")
			}
		}
		if cut(t, first) {
			t.Error("one that is answered is cut")
		}
		c.expect(t, 2, 0, 0)
		// The server has not noticed yet, and tells of an answer. It is closed all the same.
		c.Place(silent).Wait()
		c.come(t, "10.0.0.1")
		c.expect(t, 3, 0, 0)
		c.Release(silent)
		c.Release(silent) // it has no place any more
		c.Release(busy)
		if ours, _ := c.come(t, "10.0.0.1"); ours == nil || c.Place(ours).Spare {
			t.Error("there is no room where one has left")
		}
		c.expect(t, 3, 0, 0)
	})
}

// When none waits there are some places more, and beyond them none.
func TestWhenNoneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(Config{Most: 2, Spare: 2})
		var open []net.Conn
		for i := range 4 {
			ours, _ := c.come(t, "10.0.0.1")
			if got := c.Place(ours).Spare; got != (i >= 2) {
				t.Errorf("connection %d is beyond the limit: %v", i, got)
			}
			c.Place(ours).Busy()
			open = append(open, ours)
		}
		ours, theirs := c.come(t, "10.0.0.1")
		if ours != nil || !cut(t, theirs) {
			t.Error("there is a place too many")
		}
		c.expect(t, 0, 1, 0)
		for _, ours := range open {
			c.Release(ours)
		}
		c.WaitReleased()
		if ours, _ := c.come(t, "10.0.0.1"); c.Place(ours).Spare {
			t.Error("there is no room again")
		}
	})
}

// An address has its share, and of IPv6 the network is the address.
func TestAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(Config{Most: 10, PerAddress: 2})
		one, _ := c.come(t, "10.0.0.1")
		for _, addr := range []string{"::ffff:10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"} {
			if ours, _ := c.come(t, addr); ours == nil {
				t.Errorf("%s is refused", addr)
			}
		}
		c.expect(t, 0, 0, 0)
		for _, addr := range []string{"10.0.0.1", "2001:db8::3"} {
			if ours, theirs := c.come(t, addr); ours != nil || !cut(t, theirs) {
				t.Errorf("%s has one too many", addr)
			}
		}
		c.expect(t, 0, 0, 2)
		c.Release(one)
		if ours, _ := c.come(t, "10.0.0.1"); ours == nil {
			t.Error("one has left, and another is refused")
		}
	})
}

// A process that has no files left waits for some; any other error is the listener's end.
func TestAcceptErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(Config{Most: 1})
		for _, err := range []error{syscall.EMFILE, &net.OpError{Op: "accept", Err: syscall.ENFILE}, syscall.ECONNABORTED, net.ErrClosed} {
			c.coming <- err
		}
		if _, err := c.Listener.Accept(); err != net.ErrClosed {
			t.Errorf("got %v", err)
		}
	})
}
