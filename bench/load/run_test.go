package load

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// serve starts an HTTP server and returns its URL.
func serve(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// script starts a server that handles its connections one after the other, as
// many as there are steps, and returns its URL. Then it listens no more.
func script(t testing.TB, steps ...func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		var conns []net.Conn
		for range steps {
			nc, err := listener.Accept()
			if err != nil {
				return
			}
			conns = append(conns, nc)
		}
		listener.Close()
		for i, step := range steps {
			step(conns[i])
			conns[i].Close()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return "http://" + listener.Addr().String()
}

func mustAddUp(t *testing.T, r Report) {
	t.Helper()
	errs, statuses := 0, 0
	for n := range maps.Values(r.Errors) {
		errs += n
	}
	for n := range maps.Values(r.Statuses) {
		statuses += n
	}
	if r.Sent != r.Answered+errs || r.Answered != statuses {
		t.Errorf("the counts do not add up: %+v", r)
	}
}

func TestRunCounts(t *testing.T) {
	const n = 200
	var bodies [2]atomic.Int32
	var count atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) != 1 || r.Method != "POST" || r.URL.Path != "/app/predict" {
			t.Errorf("%s %s %q: %v", r.Method, r.URL, body, err)
			return
		}
		bodies[body[0]-'0'].Add(1)
		switch count.Add(1) % 5 {
		case 0:
			io.WriteString(w, `{"output":1,"default":false}`)
		case 1:
			io.WriteString(w, `{"output":0,"default":true,"default_explanation":"late"}`)
		case 2:
			io.WriteString(w, `{"output":0,"default":true,"default_explanation":"full"}`)
		case 3:
			w.WriteHeader(http.StatusTooManyRequests)
		case 4:
			panic(http.ErrAbortHandler) // closes the connection
		}
	})
	r, err := Run(t.Context(), Config{
		URL: url + "/app/predict", Body: Cycle([]byte("0"), []byte("1")),
		Rate: n * 4, Duration: 250 * time.Millisecond, Uniform: true, Connections: 8,
	})
	require.NoError(t, err)
	mustAddUp(t, r)
	if r.Sent != n || r.Unsent != 0 || r.Good != n/5 || r.Errors[Closed]+r.Errors[Reset] != n/5 {
		t.Errorf("%+v", r)
	}
	if r.Statuses[200] != 3*n/5 || r.Statuses[429] != n/5 {
		t.Errorf("statuses %v", r.Statuses)
	}
	if r.Defaults["late"] != n/5 || r.Defaults["full"] != n/5 || len(r.Defaults) != 2 {
		t.Errorf("defaults %v", r.Defaults)
	}
	if bodies[0].Load() != n/2 || bodies[1].Load() != n/2 {
		t.Errorf("the server got %d and %d of the bodies", bodies[0].Load(), bodies[1].Load())
	}
	if r.Elapsed < 250*time.Millisecond || r.Rate != float64(r.Answered)/r.Elapsed.Seconds() {
		t.Errorf("elapsed %v, rate %g", r.Elapsed, r.Rate)
	}
}

func TestEachReplyIsSeen(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "reply") })
	var seen atomic.Int32
	r, err := Run(t.Context(), Config{
		URL: url, Body: Cycle([]byte("0")), Rate: 1000, Duration: 50 * time.Millisecond, Uniform: true,
		Seen: func(reply []byte) {
			if string(reply) == "reply" {
				seen.Add(1)
			}
		},
	})
	if err != nil || r.Answered == 0 || int(seen.Load()) != r.Answered {
		t.Errorf("%d seen of %+v, %v", seen.Load(), r, err)
	}
}

// A server that stalls once for 200 ms makes all requests late that were due
// meanwhile, although only four of them can be in flight.
func TestStallCountsForEveryRequestDueMeanwhile(t *testing.T) {
	const stall = 200 * time.Millisecond
	var mu sync.Mutex
	count := 0
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if count++; count == 200 {
			<-time.After(stall)
		}
		io.WriteString(w, "1")
	})
	r, err := Run(t.Context(), Config{
		URL: url, Body: Cycle([]byte("{}")), Rate: 1000, Uniform: true,
		Duration: 600 * time.Millisecond, Connections: 4,
	})
	require.NoError(t, err)
	mustAddUp(t, r)
	if r.Sent != 600 || r.Answered != 600 {
		t.Errorf("sent %d and got %d answers, want 600", r.Sent, r.Answered)
	}
	// A third of all requests are due in the stall, a quarter in its first 150 ms.
	if r.Latency.Max < stall || r.Latency.P90 < stall/4 {
		t.Errorf("latencies %v: the stall is hidden", r.Latency)
	}
	if r.Queued < 150 {
		t.Errorf("%d requests waited for a connection, want 196 or more", r.Queued)
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-release })
	defer close(release)
	r, err := Run(t.Context(), Config{
		URL: url, Body: Cycle(nil), Rate: 200, Uniform: true,
		Duration: 200 * time.Millisecond, Timeout: 60 * time.Millisecond, Connections: 1,
	})
	require.NoError(t, err)
	mustAddUp(t, r)
	// On a busy machine not even a connection is made in time.
	if r.Sent+r.Unsent != 40 || r.Errors[TimedOut]+r.Errors[NotConnected] != r.Sent || r.Errors[TimedOut] == 0 {
		t.Errorf("%+v", r)
	}
	if r.Elapsed > 2*time.Second {
		t.Errorf("the run took %v", r.Elapsed)
	}
}

// What cannot be answered in time any more costs the server nothing.
func TestOverdueIsNotSent(t *testing.T) {
	s := &sender{conn: newConn(target{}), timeout: time.Second, tally: newTally()}
	s.send(t.Context(), 0, time.Now().Add(-2*time.Second), time.Time{})
	if r := s.tally.finish(time.Second); r.Unsent != 1 || r.Sent != 0 {
		t.Errorf("unsent %d, sent %d; want 1 and 0", r.Unsent, r.Sent)
	}
}

func TestCancelEndsPromptly(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var count atomic.Int32
	release := make(chan struct{})
	url := serve(t, func(http.ResponseWriter, *http.Request) {
		if count.Add(1) == 3 {
			cancel(cause)
		}
		<-release
	})
	defer close(release)
	r, err := Run(ctx, Config{URL: url, Body: Cycle(nil), Rate: 1000, Duration: time.Minute, Timeout: time.Minute})
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
	mustAddUp(t, r)
	if r.Sent < 3 || r.Errors[Canceled] != r.Sent || r.Elapsed > 5*time.Second {
		t.Errorf("%+v", r)
	}
	mustLeaveNoGoroutine(t)
}

// A cancel ends the wait for an arrival that is far away, too.
func TestCancelEndsTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "1")
		time.AfterFunc(20*time.Millisecond, cancel) // when the answer is there
	})
	r, err := Run(ctx, Config{URL: url, Body: Cycle(nil), Rate: 0.01, Uniform: true, Duration: time.Hour})
	if !errors.Is(err, context.Canceled) || r.Sent != 1 || r.Elapsed > 5*time.Second {
		t.Errorf("%+v, %v", r, err)
	}
	mustLeaveNoGoroutine(t)
}

// mustLeaveNoGoroutine lets those that are about to end do so.
func mustLeaveNoGoroutine(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	deadline := time.Now().Add(time.Minute)
	for {
		found := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(found, "load.(*") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines are left:\n%s", found)
		}
		runtime.Gosched()
	}
}

func TestConnectionThatEndsIsDialledAgain(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "1")
	})
	r, err := Run(t.Context(), Config{URL: url, Body: Cycle(nil), Rate: 200, Uniform: true, Duration: 50 * time.Millisecond, Connections: 1})
	if err != nil || r.Good != 10 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestErrorsByKind(t *testing.T) {
	url := script(t, func(nc net.Conn) {
		if _, err := readMessage(bufio.NewReaderSize(nc, maxLine), nil); err != nil {
			t.Error(err)
		}
		io.WriteString(nc, "+PONG\r\nContent-Length: 0\r\n\r\n")
	})
	r, err := Run(t.Context(), Config{URL: url, Body: Cycle(nil), Rate: 100, Uniform: true, Duration: 30 * time.Millisecond, Connections: 1})
	require.NoError(t, err)
	mustAddUp(t, r)
	if r.Sent != 3 || r.Errors[NotHTTP] != 1 || r.Errors[NotConnected] != 2 {
		t.Errorf("%+v", r)
	}
}

func TestRunFailsBeforeSending(t *testing.T) {
	good := Config{URL: script(t), Body: Cycle(nil), Rate: 1, Duration: time.Second}
	bad := good
	bad.Rate = 0
	if _, err := Run(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "rate") {
		t.Errorf("without a rate: %v", err)
	}
	bad = good
	bad.URL = "localhost"
	if _, err := Run(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "http://host:port/path") {
		t.Errorf("without a scheme: %v", err)
	}
	if _, err := Run(t.Context(), good); err == nil || !strings.Contains(err.Error(), "connect to the server") {
		t.Errorf("without a server: %v", err)
	}
}
