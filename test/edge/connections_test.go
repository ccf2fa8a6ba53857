//go:build edge

package edge

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// maxConnections is the default of max_connections, and spare are those that are told beyond it.
const maxConnections, spare = 4096, 64

// silent is more connections than there may be, which say nothing; health is asked meanwhile.
func silent() attack {
	const n = 4200
	return attack{
		name: fmt.Sprintf("%d connect and are silent", n),
		run: func(t *testing.T, s *server) {
			var asked, failed atomic.Int32
			over, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				s.watchHealth(t, over, &asked, &failed)
			}()
			all := s.crowd(t, s.gateway, n, 1400, nil, nil)
			defer all.leave()
			time.Sleep(5 * time.Second)
			close(over)
			<-done
			if failed.Load() > 0 || asked.Load() < 10 {
				t.Errorf("health was asked %d times and not answered %d times", asked.Load(), failed.Load())
			}
		},
		outside: (maxConnections + spare) * perConnection,
	}
}

// watchHealth asks for it on a connection of its own, some times a second.
func (s *server) watchHealth(t *testing.T, over chan struct{}, asked, failed *atomic.Int32) {
	for {
		select {
		case <-over:
			return
		case <-time.After(200 * time.Millisecond):
		}
		asked.Add(1)
		if status, _, body, err := s.one(s.gateway, head("GET", "/health", "Connection: close")); status != 200 {
			if failed.Add(1) == 1 {
				t.Logf("health: %d %s %v", status, body, err)
			}
		}
	}
}

// busy is more connections than there may be, all of which wait for an answer, and health.
func busyAndIdle() attack {
	const n = 4200
	return attack{
		name: fmt.Sprintf("%d connect, ask once and stay", n),
		run: func(t *testing.T, s *server) {
			all := s.crowd(t, s.gateway, n, 700, nil, say(head("GET", "/health")))
			defer all.leave()
			for range 5 {
				if status, _, body, err := s.one(s.gateway, head("GET", "/health")); status != 200 {
					t.Errorf("health: %d %s %v", status, body, err)
				}
				time.Sleep(200 * time.Millisecond)
			}
		},
		outside: (maxConnections + spare) * perConnection,
	}
}

// halfClosed is clients that say at once that nothing more comes: after a whole request, which
// is answered, or in the middle of one.
func halfClosed() attack {
	whole := post("/target/predict", `{"input":[1,2]}`)
	return attack{
		name: "clients close their half",
		run: func(t *testing.T, s *server) {
			var wrong atomic.Int32
			side(4, 5*time.Second, func(worker, n int) {
				time.Sleep(20 * time.Millisecond)
				c, err := net.Dial("tcp", s.gateway)
				if err != nil {
					wrong.Add(1)
					return
				}
				defer c.Close()
				request, answered := whole, true
				if n%2 == 1 {
					request, answered = whole[:n%len(whole)], false
				}
				_, _ = io.WriteString(c, request)
				_ = c.(*net.TCPConn).CloseWrite()
				_ = c.SetReadDeadline(time.Now().Add(12 * time.Second))
				text, err := io.ReadAll(c)
				if err != nil || answered != (len(text) > 12 && string(text[9:12]) == "200") {
					if wrong.Add(1) == 1 {
						t.Logf("after %q: %.100q %v", request, text, err)
					}
				}
			})
			if wrong.Load() > 0 {
				t.Errorf("%d were answered wrongly, or late", wrong.Load())
			}
		},
	}
}

// vanishing is clients that are gone in the middle of anything.
func vanishing() attack {
	whole, large := post("/target/predict", `{"input":[1,2]}`), head("POST", "/target/predict", "Content-Length: 1000000")
	return attack{
		name: "clients vanish in the middle of anything",
		run: func(t *testing.T, s *server) {
			side(4, 5*time.Second, func(worker, n int) {
				time.Sleep(10 * time.Millisecond)
				c, err := net.DialTimeout("tcp", s.gateway, time.Second)
				if err != nil {
					return
				}
				switch n % 4 {
				case 0:
					_, _ = io.WriteString(c, whole[:n%len(whole)])
				case 1:
					_, _ = io.WriteString(c, large+string(make([]byte, 100_000)))
				case 2:
					_, _ = io.WriteString(c, whole+whole+whole)
				case 3:
					_, _ = io.WriteString(c, post("/large/predict", fmt.Sprintf(`{"input":[%d]}`, n%8)))
					time.Sleep(5 * time.Millisecond)
					_, _ = c.Read(make([]byte, 100))
				}
				vanish(c)
			})
		},
	}
}

// handshakes is connections to a listener with TLS that do not shake hands: a third is silent, a
// third begins and stops, and a third begins with what is no TLS.
func handshakes() attack {
	const n = 1000
	// The head of a record that would hold a handshake, and of the handshake's first message.
	hello := "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
	return attack{
		name: fmt.Sprintf("%d do not shake hands", n),
		run: func(t *testing.T, s *server) {
			i := 0
			all := s.crowd(t, s.gateway, n, 500, nil, func(c net.Conn) {
				i++
				say([]string{"", hello, "GET / HTTP/1.1\r\n\r\n"}[i%3])(c)
			})
			defer all.leave()
			all.trickle("", time.Second, 10*time.Second)
			s.expectEnded(t, all)
		},
		outside: n * perConnection,
	}
}

// shaking is clients that shake hands and leave, again and again.
func shaking() attack {
	return attack{
		name: "clients shake hands and leave, 200 a second",
		run: func(t *testing.T, s *server) {
			side(2, 5*time.Second, func(int, int) {
				time.Sleep(10 * time.Millisecond)
				if c, err := s.dial(s.gateway); err == nil {
					c.Close()
				}
			})
		},
	}
}

// addresses is many clients of many addresses, of which each may have some connections.
func addresses(each int) attack {
	var from []string
	for i := range 20 {
		from = append(from, fmt.Sprintf("127.0.0.%d", 10+i))
	}
	return attack{
		name: fmt.Sprintf("20 addresses with more than %d connections each", each),
		run: func(t *testing.T, s *server) {
			all := s.crowd(t, s.gateway, 20*3*each, 200, from, nil)
			defer all.leave()
			time.Sleep(time.Second)
			if counts := all.closed(); counts[-1] != 20*each {
				t.Errorf("%d connections are open, and %d may be: %v", counts[-1], 20*each, counts)
			}
		},
		outside: 1000 * perConnection,
	}
}
