//go:build edge

package edge

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// endless are the queries whose answers in parts do not end by themselves: in OpenAI's form, and our own.
func endless(n int) string {
	const messages = `"messages":[{"role":"user","content":"endless"}]`
	if n%2 == 0 {
		return post("/openai/v1/chat/completions", `{"model":"chat","stream":true,`+messages+`}`)
	}
	return post("/chat/predict", `{"input":{`+messages+`}}`, "Accept: text/event-stream")
}

// talking is how many answers models work on.
func (s *server) talking(t *testing.T) int {
	t.Helper()
	running, err := s.series("topsail_sidecar_queries_running{")
	if err != nil {
		t.Fatal(err)
	}
	return int(running)
}

// awaitTalking waits until the model works on a number of answers.
func (s *server) awaitTalking(t *testing.T, within time.Duration, good func(n int) bool) {
	t.Helper()
	for over := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		n := s.talking(t)
		if good(n) {
			return
		}
		if time.Now().After(over) {
			t.Errorf("the model works on %d answers after %v", n, within)
			return
		}
	}
}

func none(n int) bool { return n == 0 }

// droppedStreams is clients that leave after the beginning of their answers: the model stops at once.
func droppedStreams() attack {
	const n = 300
	return attack{
		name: fmt.Sprintf("%d begin to read answers in parts and vanish", n),
		run: func(t *testing.T, s *server) {
			var begun atomic.Int32
			i := 0
			all := s.crowd(t, s.gateway, n, 100, nil, func(c net.Conn) {
				say(endless(i))(c)
				i++
				b := make([]byte, 12)
				_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
				if _, err := c.Read(b); err == nil && strings.HasSuffix(string(b), " 200") {
					begun.Add(1)
				}
				vanish(c)
			})
			defer all.leave()
			if begun.Load() < n*9/10 {
				t.Errorf("%d of %d answers began", begun.Load(), n)
			}
			s.awaitTalking(t, 2*time.Second, none)
		},
		outside: n * perConnection,
	}
}

// unreadStreams is clients that do not read their answers: they are cut off, and the model stops.
func unreadStreams() attack {
	const n = 16
	return attack{
		name: fmt.Sprintf("%d do not read their answers in parts", n),
		run: func(t *testing.T, s *server) {
			i := 0
			all := s.crowd(t, s.gateway, n, n, nil, func(c net.Conn) {
				_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
				say(endless(i))(c)
				i++
			})
			defer all.leave()
			s.awaitTalking(t, 5*time.Second, func(n int) bool { return n > 0 })
			s.awaitTalking(t, 25*time.Second, none)
			s.expectNothingUnderWay(t)
			s.awaitEnded(t, all)
		},
		outside: n * (1<<20 + perConnection), // what may be unread
	}
}

// awaitEnded waits until the server has ended the connections of clients that are still there.
func (s *server) awaitEnded(t *testing.T, all *crowd) {
	t.Helper()
	for over := time.Now().Add(15 * time.Second); time.Now().Before(over); time.Sleep(100 * time.Millisecond) {
		if s.state(t).descriptors-s.first.descriptors <= strayFiles {
			return
		}
	}
	s.expectEnded(t, all)
}
