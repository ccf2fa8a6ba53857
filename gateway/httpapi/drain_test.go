package httpapi

import (
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// slow makes the core answer after d, or sooner with ctx's error.
func slow(d time.Duration) *fakeCore {
	core := newFake()
	core.answer = func(ctx context.Context, _ *serving.Query) (serving.Prediction, error) {
		select {
		case <-time.After(d):
			return serving.Prediction{Output: []byte("1")}, nil
		case <-ctx.Done():
			return serving.Prediction{}, ctx.Err()
		}
	}
	return core
}

func TestDrainLetsQueriesEnd(t *testing.T) {
	bubble(t, Config{DrainTimeout: 10 * time.Second}, slow(3*time.Second), func(t *testing.T, s *piped) {
		idle, unused, busy, arriving := s.dial(), s.dial(), s.dial(), s.dial()
		idle.do(t, "GET", "/health", "")
		busy.send(t, request("POST", "/doubles/predict", `{"input":[1]}`))
		arriving.send(t, "GET /health HTTP/1.1\r\nHost: x\r\n")
		synctest.Wait()

		start := time.Now()
		s.stop()
		synctest.Wait()
		for _, c := range []*client{idle, unused} {
			if rest, err := io.ReadAll(c.r); len(rest) > 0 || err != nil {
				t.Errorf("a connection without a request was not closed: %q, %v", rest, err)
			}
		}
		arriving.send(t, "\r\n")
		if got := arriving.read(t, "GET"); got.status != 503 || got.body != `{"status":"draining"}` || !got.close {
			t.Errorf("health: %d %s, close %v", got.status, got.body, got.close)
		}
		if got := busy.read(t, "POST"); got.status != 200 || !got.close {
			t.Errorf("query in flight: %d %s, close %v", got.status, got.body, got.close)
		}
		if err := s.done(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(start); took < 3*time.Second || took > 3200*time.Millisecond {
			t.Errorf("draining took %v, the query 3s", took)
		}
		select {
		case <-s.ln.closed:
		default:
			t.Error("the listener is still open")
		}
	})
}

func TestDrainTimeoutCancelsQueries(t *testing.T) {
	bubble(t, Config{DrainTimeout: 2 * time.Second}, slow(time.Minute), func(t *testing.T, s *piped) {
		c := s.dial()
		c.send(t, request("POST", "/doubles/predict", `{"input":[1]}`))
		synctest.Wait()
		start := time.Now()
		s.stop()
		got := c.read(t, "POST")
		if class, _ := got.refusal(t); got.status != 503 || class != "Unavailable" || !got.close || time.Since(start) != 2*time.Second {
			t.Errorf("%d %s, close %v, after %v", got.status, got.body, got.close, time.Since(start))
		}
		if err := s.done(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if log := s.log.String(); log != "" {
			t.Errorf("logged: %s", log)
		}
	})
}

// Even a core that does not listen is waited for, but not its client.
func TestDrainCutsConnections(t *testing.T) {
	core := newFake()
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		time.Sleep(time.Minute)
		return serving.Prediction{Output: []byte("1")}, nil
	}
	bubble(t, Config{DrainTimeout: 2 * time.Second}, core, func(t *testing.T, s *piped) {
		c, start := s.dial(), time.Now()
		c.send(t, request("POST", "/doubles/predict", `{"input":[1]}`))
		synctest.Wait()
		s.stop()
		if rest, err := io.ReadAll(c.r); len(rest) > 0 || err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("cut after %v with %q, %v", time.Since(start), rest, err)
		}
		err := s.done()
		if err == nil || !strings.Contains(err.Error(), "connections that were open after 3s are closed") || time.Since(start) != time.Minute {
			t.Errorf("Run after %v: %v", time.Since(start), err)
		}
	})
}

func TestRunAfterTheEnd(t *testing.T) {
	bubble(t, Config{}, newFake(), func(t *testing.T, s *piped) {
		s.stop() // perhaps before Run has begun
		if err := s.done(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestAcceptSurvivesRunningOutOfFiles(t *testing.T) {
	bubble(t, Config{}, newFake(), func(t *testing.T, s *piped) {
		// The server has begun; the errors are for the Accept after this dial.
		synctest.Wait()
		s.ln.errs = []error{&net.OpError{Op: "accept", Err: syscall.EMFILE}, &net.OpError{Op: "accept", Err: syscall.ECONNABORTED}, syscall.ENFILE}
		first := s.dial()
		second := s.dial()
		for _, c := range []*client{first, second} {
			if got := c.do(t, "GET", "/health", ""); got.status != 200 {
				t.Errorf("status %d", got.status)
			}
		}
		if log := s.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "too many open files") {
			t.Errorf("log: %s", log)
		}
		s.stop()
		if err := s.done(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
