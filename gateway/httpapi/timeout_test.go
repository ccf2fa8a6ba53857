package httpapi

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// A request must arrive whole within the read timeout, however it trickles.
func TestSlowRequest(t *testing.T) {
	for _, sent := range []string{
		"",
		"POST /doubles/pre",
		"POST /doubles/predict HTTP/1.1\r\nHost: x\r\n",
		"POST /doubles/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\n\r\n{\"inp",
	} {
		bubble(t, Config{}, newFake(), func(t *testing.T, s *piped) {
			c, start := s.dial(), time.Now()
			if sent != "" {
				c.send(t, sent)
			}
			got := c.read(t, "POST")
			class, cause := got.refusal(t)
			if got.status != 408 || class != "Request timeout" || !strings.Contains(cause, "10s") || !got.close {
				t.Errorf("%q: %d %s, close %v", sent, got.status, got.body, got.close)
			}
			if took := time.Since(start); took != 10*time.Second {
				t.Errorf("%q: cut off after %v", sent, took)
			}
		})
	}
}

func TestTricklingBody(t *testing.T) {
	bubble(t, Config{}, newFake(), func(t *testing.T, s *piped) {
		c, start := s.dial(), time.Now()
		c.send(t, "POST /strings/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
		go func() {
			for {
				time.Sleep(time.Second)
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
			}
		}()
		if got := c.read(t, "POST"); got.status != 408 || time.Since(start) != 10*time.Second {
			t.Errorf("%d after %v", got.status, time.Since(start))
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	bubble(t, Config{}, newFake(), func(t *testing.T, s *piped) {
		c := s.dial()
		for range 3 {
			if got := c.do(t, "GET", "/health", ""); got.status != 200 {
				t.Fatalf("status %d", got.status)
			}
			time.Sleep(59 * time.Second)
		}
		if got := c.do(t, "GET", "/health", ""); got.status != 200 {
			t.Fatalf("status %d", got.status)
		}
		start := time.Now()
		if rest, err := io.ReadAll(c.r); len(rest) > 0 || err != nil || time.Since(start) != time.Minute {
			t.Errorf("closed after %v with %q, %v", time.Since(start), rest, err)
		}
	})
}

// A client that does not read its answer is dropped.
func TestSlowReader(t *testing.T) {
	bubble(t, Config{}, newFake(), func(t *testing.T, s *piped) {
		c := s.dial()
		c.send(t, request("GET", "/health", ""))
		time.Sleep(10*time.Second + lateness + time.Millisecond)
		if rest, err := io.ReadAll(c.r); len(rest) > 0 || err != nil {
			t.Errorf("got %q, %v", rest, err)
		}
	})
}

// A query may take longer than any of the timeouts, and its connection lives on.
func TestALongQueryIsNotCutOff(t *testing.T) {
	bubble(t, Config{}, slow(serving.MaxSLO), func(t *testing.T, s *piped) {
		c, start := s.dial(), time.Now()
		for range 2 {
			if got := c.do(t, "POST", "/doubles/predict", `{"input":[1]}`); got.status != 200 || got.close {
				t.Fatalf("%d %s after %v, close %v", got.status, got.body, time.Since(start), got.close)
			}
		}
		if took := time.Since(start); took != 2*serving.MaxSLO {
			t.Errorf("it took %v", took)
		}
	})
}
