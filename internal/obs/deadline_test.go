package obs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wire is one connection to a server, in a bubble, where time is the test's.
type wire struct {
	net.Conn
	read *bufio.Reader
}

// serve serves h on one connection until the test ends.
func serve(t *testing.T, h http.HandlerFunc) *wire {
	ours, theirs := net.Pipe()
	listener := &single{conn: make(chan net.Conn, 1), done: make(chan struct{})}
	listener.conn <- theirs
	server := &http.Server{Handler: deadlines(h), IdleTimeout: time.Hour}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		ours.Close()
		<-ended
	})
	return &wire{ours, bufio.NewReader(ours)}
}

// single is a listener that has one connection.
type single struct {
	conn chan net.Conn
	done chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	select {
	case c := <-s.conn:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *single) Addr() net.Addr { return &net.TCPAddr{} }

func (s *single) Close() error {
	close(s.done)
	return nil
}

func (w *wire) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func (w *wire) answer(t *testing.T) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(w.read, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// A body that stalls ends, and one that goes on may take long.
func TestBodies(t *testing.T) {
	for _, tt := range []struct {
		name  string
		piece int // bytes that come every 20 s
		n     int
		want  error
	}{
		{"steady", piece, 100, nil},
		{"dripping", piece / 100, 100, os.ErrDeadlineExceeded},
		{"stalling", 0, 100, os.ErrDeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got error
				w := serve(t, func(w http.ResponseWriter, r *http.Request) { _, got = io.Copy(io.Discard, r.Body) })
				w.send(t, fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", max(1, tt.piece)*tt.n))
				var sending sync.WaitGroup
				defer sending.Wait()
				sending.Go(func() {
					for range tt.n {
						if _, err := io.WriteString(w, strings.Repeat("x", tt.piece)); err != nil {
							return
						}
						time.Sleep(20 * time.Second)
					}
				})
				start := time.Now()
				w.answer(t)
				if !errors.Is(got, tt.want) {
					t.Errorf("got %v", got)
				}
				if took := time.Since(start); tt.want != nil && took > 2*stall {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// A body that nobody wants must not keep the connection either.
func TestBodiesThatAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		w.send(t, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nx")
		start := time.Now()
		if resp := w.answer(t); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("got %s", resp.Status)
		}
		if _, err := w.read.ReadByte(); err != io.EOF {
			t.Errorf("the connection is open: %v", err)
		}
		if took := time.Since(start); took > 2*stall {
			t.Errorf("it took %v", took)
		}
	})
}

// Nor may it trickle, which whoever has no key could do, too.
func TestBodiesThatTrickleForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		w.send(t, fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", 100*piece))
		start := time.Now()
		for range 100 {
			if _, err := w.Write(make([]byte, piece)); err != nil {
				break
			}
			time.Sleep(20 * time.Second)
		}
		if took := time.Since(start); took > 3*stall {
			t.Errorf("it took %v", took)
		}
	})
}

// Whoever sends everything before they read gets to read that it is too much.
func TestBodiesThatAreTooLarge(t *testing.T) {
	for _, tt := range []struct {
		name, expect string
		size         int
		whole        bool
	}{
		{"large", "", unwanted - 1, true},
		{"far too large", "", 2 * unwanted, false},
		{"asking first", "Expect: 100-continue\r\n", unwanted - 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) })
				var reading sync.WaitGroup
				defer reading.Wait()
				got := make(chan string, 1)
				reading.Go(func() {
					line, _ := w.read.ReadString('\n')
					got <- line
					_, _ = io.Copy(io.Discard, w.read)
				})
				w.send(t, fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\n%sContent-Length: %d\r\n\r\n", tt.expect, tt.size))
				_, err := w.Write(make([]byte, tt.size))
				if whole := err == nil; whole != tt.whole {
					t.Errorf("all of the body is taken: %v, error %v", whole, err)
				}
				if line := <-got; !strings.HasPrefix(line, "HTTP/1.1 413 ") {
					t.Errorf("got %q", line)
				}
				w.Close()
			})
		})
	}
}

// After a body has come, the server may think for long: it notices if the client leaves,
// and no deadline is left over.
func TestAfterTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan error, 1)
		w := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/stay" {
				time.Sleep(10 * stall)
				return
			}
			<-r.Context().Done()
			left <- context.Cause(r.Context())
		})
		w.send(t, "POST /stay HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
		if resp := w.answer(t); resp.StatusCode != http.StatusOK {
			t.Errorf("got %s", resp.Status)
		}
		time.Sleep(10 * stall)
		w.send(t, "POST /leave HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
		time.Sleep(10 * stall)
		synctest.Wait()
		select {
		case err := <-left:
			t.Fatalf("it was cut off: %v", err)
		default:
		}
		w.Close()
		<-left
	})
}

// Whoever stops reading is cut off, and whoever reads on may take long.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		every time.Duration // in which a piece is read
		ended bool
	}{{"steady", 20 * time.Second, false}, {"stalling", time.Hour, true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const whole = 10 * piece
				sent := make(chan error, 1)
				w := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					n, err := w.Write(make([]byte, whole))
					if err == nil && n != whole {
						err = io.ErrShortWrite
					}
					sent <- err
				})
				w.send(t, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				start := time.Now()
				var reading sync.WaitGroup
				defer reading.Wait()
				reading.Go(func() {
					for buffer := make([]byte, piece); ; time.Sleep(tt.every) {
						if _, err := io.ReadFull(w, buffer); err != nil {
							return
						}
					}
				})
				if err := <-sent; errors.Is(err, os.ErrDeadlineExceeded) != tt.ended {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
				w.Close()
			})
		})
	}
}

// An answer that goes on is quiet for as long as it has nothing to say.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				_, _ = io.WriteString(w, "line\n")
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * stall)
			}
		})
		w.send(t, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if text, err := io.ReadAll(w.answer(t).Body); err != nil || string(text) != "line\nline\nline\n" {
			t.Errorf("got %q, error %v", text, err)
		}
	})
}

// A profile goes on for as long as was asked for, though nothing is sent meanwhile.
func TestLongProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := opsHandler(NewRegistry(), Health{Ready: func() error { return nil }}, nil)
		w := serve(t, ops.ServeHTTP)
		start := time.Now()
		w.send(t, "GET /debug/pprof/allocs?seconds=600 HTTP/1.1\r\nHost: h\r\n\r\n")
		n, err := io.Copy(io.Discard, w.answer(t).Body)
		if took := time.Since(start); err != nil || n == 0 || took < 10*time.Minute {
			t.Errorf("%d bytes after %v: %v", n, took, err)
		}
	})
}
