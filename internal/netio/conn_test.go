package netio_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"github.com/topsail-serving/topsail/internal/netio"
	"github.com/topsail-serving/topsail/test/require"
)

// pair is both ends of a connection.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	dialled, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	accepted, err := ln.Accept()
	require.NoError(t, err)
	a, b = netio.Wrap(dialled), netio.Wrap(accepted)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// TestConn is the net package's own account of what a connection does.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
		a, b = pair(t)
		return a, b, func() { a.Close(); b.Close() }, nil
	})
}

func TestMoreThanTheSocketHolds(t *testing.T) {
	a, b := pair(t)
	sent := make([]byte, 32<<20)
	if _, err := rand.Read(sent); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		n, err := a.Write(sent)
		if err == nil && n != len(sent) {
			err = io.ErrShortWrite
		}
		wrote <- errors.Join(err, a.Close())
	}()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("read %d of %d bytes: %v", len(got), len(sent), err)
	}
	require.NoError(t, <-wrote)
}

// WriteNow takes what the socket has room for, and the rest can follow.
func TestWriteNow(t *testing.T) {
	a, b := pair(t)
	sent := make([]byte, 32<<20)
	if _, err := rand.Read(sent); err != nil {
		t.Fatal(err)
	}
	n := netio.WriteNow(a, sent)
	if n == 0 || n == len(sent) {
		t.Errorf("%d of %d bytes were written, and nothing was read", n, len(sent))
	}
	if more := netio.WriteNow(a, sent[n:]); more == len(sent)-n {
		t.Errorf("%d bytes more", more)
	} else {
		n += more
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := a.Write(sent[n:])
		wrote <- errors.Join(err, a.Close())
	}()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("read %d of %d bytes: %v", len(got), len(sent), err)
	}
	require.NoError(t, <-wrote)
	if n := netio.WriteNow(a, sent); n != 0 {
		t.Errorf("%d bytes were written after the end", n)
	}
	near, _ := net.Pipe()
	if n := netio.WriteNow(near, sent); n != 0 {
		t.Errorf("a pipe took %d bytes", n)
	}
}

// TestErrors says that errors are those of the net package.
func TestErrors(t *testing.T) {
	read := func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }
	write := func(c net.Conn) error { _, err := c.Write([]byte{1}); return err }
	for _, test := range []struct {
		name string
		fail func(a, b net.Conn) error
		want error
		text string
	}{
		{"read past the deadline", func(a, _ net.Conn) error { return errors.Join(a.SetDeadline(time.Unix(1, 0)), read(a)) }, os.ErrDeadlineExceeded, "read tcp "},
		{"write past the deadline", func(a, _ net.Conn) error { return errors.Join(a.SetDeadline(time.Unix(1, 0)), write(a)) }, os.ErrDeadlineExceeded, "write tcp "},
		{"read when closed", func(a, _ net.Conn) error { a.Close(); return read(a) }, net.ErrClosed, "read tcp "},
		{"write when closed", func(a, _ net.Conn) error { a.Close(); return write(a) }, net.ErrClosed, "write tcp "},
		{"read after a reset", func(a, b net.Conn) error { reset(t, b); return read(a) }, syscall.ECONNRESET, "read tcp "},
		{"write after a reset", func(a, b net.Conn) error { reset(t, b); _ = read(a); return write(a) }, syscall.EPIPE, "write tcp "},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := pair(t)
			err := test.fail(a, b)
			if !errors.Is(err, test.want) || !strings.HasPrefix(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// reset closes c so that the peer's reads and writes fail.
func reset(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.(interface{ SetLinger(int) error }).SetLinger(0))
	c.Close()
}

func TestEnd(t *testing.T) {
	a, b := pair(t)
	require.NoError(t, a.(interface{ CloseWrite() error }).CloseWrite())
	if n, err := b.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read %d bytes: %v", n, err)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	a, b := pair(t)
	out, in := make([]byte, 100), make([]byte, 100)
	n := testing.AllocsPerRun(100, func() {
		if _, err := a.Write(out); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(b, in); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOtherConnections are left alone.
func TestOtherConnections(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if netio.Wrap(a) != a {
		t.Error("a pipe was wrapped")
	}
}

// BenchmarkPingPong is a message there and back, for a connection here and one of the
// net package.
func BenchmarkPingPong(b *testing.B) {
	bench := func(wrap func(net.Conn) net.Conn) func(*testing.B) {
		return func(b *testing.B) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(b, err)
			defer ln.Close()
			go func() {
				accepted, err := ln.Accept()
				if err != nil {
					return
				}
				defer accepted.Close()
				_, _ = io.Copy(struct{ io.Writer }{wrap(accepted)}, struct{ io.Reader }{wrap(accepted)})
			}()
			dialled, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(b, err)
			defer dialled.Close()
			c, message := wrap(dialled), make([]byte, 100)
			for b.Loop() {
				if _, err := c.Write(message); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, message); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("netio", bench(netio.Wrap))
	b.Run("net", bench(func(nc net.Conn) net.Conn { return nc }))
}
