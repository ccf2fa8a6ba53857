package obs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/test/pipes"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// served is a listener that serves until the test ends.
type served struct {
	dialer  func() (net.Conn, error)
	metrics *Registry
	log     *bytes.Buffer // may be read when nobody connects any more
}

func serveListener(t *testing.T, limit int, h http.HandlerFunc) *served {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveOn(t, ln, func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }, limit, h)
}

func serveOn(t *testing.T, ln net.Listener, dial func() (net.Conn, error), limit int, h http.HandlerFunc) *served {
	t.Helper()
	s := &served{dialer: dial, metrics: NewRegistry(), log: &bytes.Buffer{}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		l := Listener{Listener: ln, Name: "management", MaxConnections: limit, Metrics: s.metrics, Log: slog.New(slog.NewTextHandler(s.log, nil))}
		ended <- ServeHTTP(ctx, l, h)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *served) dial(t *testing.T) *wire {
	t.Helper()
	c, err := s.dialer()
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return &wire{c, bufio.NewReader(c)}
}

// ask asks for a path and returns the status of the answer, which it has read.
func (w *wire) ask(t *testing.T, path string) int {
	t.Helper()
	w.send(t, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
	answer := w.answer(t)
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// closed counts the connections that were closed for a reason.
func (s *served) closed(t *testing.T, reason string) (n int) {
	t.Helper()
	w := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if text, ok := strings.CutPrefix(line, `topsail_http_connections_closed_total{listener="management",reason="`+reason+`"} `); ok {
			if _, err := fmt.Sscan(text, &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// Beyond the limit, what has waited longest is closed, be it that it was answered before or
// that it never asked. One that asks again has not waited long.
func TestTheLongestWaitingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipes.Network
		ln := network.Listen()
		s := serveOn(t, ln, func() (net.Conn, error) { return network.Dial(t.Context(), ln.Addr().String()) }, 3, ok)
		ask := func(w *wire, who string) {
			t.Helper()
			if got := w.ask(t, "/"); got != http.StatusOK {
				t.Errorf("%s gets %d", who, got)
			}
			time.Sleep(time.Millisecond) // by then it waits again
		}
		old, silent, again := s.dial(t), s.dial(t), s.dial(t)
		time.Sleep(time.Millisecond)
		ask(old, "the first one")
		ask(again, "the third one")
		for _, longest := range []*wire{silent, old} {
			ask(again, "one that asks often")
			ask(s.dial(t), "a new one")
			if _, err := longest.read.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("what waited longest: %v", err)
			}
		}
		ask(again, "one that asks often")
		if idle, full := s.closed(t, "idle"), s.closed(t, "full"); idle != 2 || full != 0 {
			t.Errorf("%d idle ones and %d others were closed", idle, full)
		}
		if n := strings.Count(s.log.String(), "\n"); n != 1 || !strings.Contains(s.log.String(), "listener=management") {
			t.Errorf("log: %s", s.log)
		}
	})
}

// What is closed is counted from the start, so that rules and charts find it.
func TestClosedConnectionsAreShownBeforeThereAreAny(t *testing.T) {
	s := serveListener(t, 3, ok)
	for _, reason := range []string{"idle", "full"} {
		want := `topsail_http_connections_closed_total{listener="management",reason="` + reason + `"} 0`
		wait.Until(t, want, func() bool { // the listener serves in its own time
			w := httptest.NewRecorder()
			s.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			return strings.Contains(w.Body.String(), want)
		})
	}
}

// Any number of connections that say nothing keeps nobody out.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	s := serveListener(t, 8, ok)
	for range 200 {
		s.dial(t)
	}
	if got := s.dial(t).ask(t, "/"); got != http.StatusOK {
		t.Errorf("got %d", got)
	}
	if idle := s.closed(t, "idle"); idle != 201-8 {
		t.Errorf("%d were closed", idle)
	}
}

// Nor do those that announce a body which nobody wants, and do not send it.
func TestBodiesThatNobodyWantsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	s := serveListener(t, 8, ok)
	for range 8 + 2*spare {
		s.dial(t).send(t, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n")
	}
	wait.Until(t, "another client is answered", func() bool {
		w := s.dial(t)
		w.send(t, "GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
		answer, err := http.ReadResponse(w.read, nil)
		return err == nil && answer.StatusCode == http.StatusOK
	})
	for range 20 {
		if got := s.dial(t).ask(t, "/health"); got != http.StatusOK {
			t.Errorf("got %d", got)
		}
	}
}

// When all connections are being answered, others are told to come back and get the health;
// beyond those there are is no place at all.
func TestWhenAllAreBeingAnswered(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, 2+spare), make(chan struct{})
	s := serveListener(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" || r.URL.Query().Has("slow") {
			begun <- struct{}{}
			<-end
		}
	})
	var slow []*wire
	hold := func(path string) {
		w := s.dial(t)
		w.send(t, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
		<-begun
		slow = append(slow, w)
	}
	hold("/slow")
	hold("/slow")
	w := s.dial(t)
	w.send(t, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	answer := w.answer(t)
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != 503 || answer.Header.Get("Retry-After") != "1" || !answer.Close || err != nil || !strings.Contains(string(text), "send the request again in a second") {
		t.Errorf("got %s %v %q", answer.Status, answer.Header, text)
	}
	for _, path := range []string{"/health", "/health/live", "/health/ready"} {
		if got := s.dial(t).ask(t, path); got != http.StatusOK {
			t.Errorf("%s: %d", path, got)
		}
	}
	for range spare {
		hold("/health?slow")
	}
	if _, err := s.dial(t).read.ReadByte(); err == nil {
		t.Error("there is a place too many")
	}
	if full := s.closed(t, "full"); full != 2 {
		t.Errorf("%d were refused", full)
	}
	close(end)
	for _, w := range slow {
		if got := w.answer(t); got.StatusCode != http.StatusOK {
			t.Errorf("one that was let in gets %s", got.Status)
		}
	}
	wait.Until(t, "there is room again", func() bool {
		w := s.dial(t)
		defer w.Close()
		w.send(t, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		answer, err := http.ReadResponse(w.read, nil)
		return err == nil && answer.StatusCode == http.StatusOK
	})
}

// Of the pages that take memory only so many are read at a time, and of health any number.
func TestPagesAtOnce(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, atOnce), make(chan struct{})
	page := Page{Path: "/streams", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-end
	})}
	ops := opsHandler(NewRegistry(), Health{Ready: func() error { return nil }}, nil, page)
	s := serveListener(t, 2*atOnce, ops.ServeHTTP)
	var slow []*wire
	for range atOnce {
		w := s.dial(t)
		w.send(t, "GET /streams HTTP/1.1\r\nHost: h\r\n\r\n")
		<-begun
		slow = append(slow, w)
	}
	for path, want := range map[string]int{"/metrics": 503, "/debug/pprof/heap": 503, "/health/ready": 200} {
		if got := s.dial(t).ask(t, path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	close(end)
	for _, w := range slow {
		w.answer(t)
	}
	wait.Until(t, "metrics can be read again", func() bool { return s.dial(t).ask(t, "/metrics") == http.StatusOK })
}
