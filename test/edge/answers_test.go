//go:build edge

package edge

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// asksLarge asks for an answer of 5 MB that nobody has asked for, with hardly room to receive it.
func asksLarge() func(net.Conn) {
	n := 0
	return func(c net.Conn) {
		n++
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		_, _ = io.WriteString(c, post("/large/predict", fmt.Sprintf(`{"input":[%d],"no_cache":true}`, n)))
	}
}

// unread is clients that ask for 5 MB each and do not read them.
func unread() attack {
	const n = 200
	return attack{
		name: fmt.Sprintf("%d ask for 5 MB and do not read", n),
		run: func(t *testing.T, s *server) {
			all := s.crowd(t, s.gateway, n, 200, nil, asksLarge())
			defer all.leave()
			time.Sleep(8 * time.Second)
			s.expectNothingUnderWay(t)
		},
		outside: n * perConnection,
		burst:   largeBurst,
	}
}

// largeBurst is half of the steady app's objective.
const largeBurst = 50 * time.Millisecond

// slowReaders is clients that ask for 5 MB each and read a little now and then.
func slowReaders() attack {
	const n = 100
	return attack{
		name: fmt.Sprintf("%d ask for 5 MB and read 1 KB a second", n),
		run: func(t *testing.T, s *server) {
			all := s.crowd(t, s.gateway, n, 50, nil, asksLarge())
			defer all.leave()
			all.sip(1<<10, time.Second, 8*time.Second)
			s.expectNothingUnderWay(t)
		},
		outside: n * perConnection,
		burst:   largeBurst,
	}
}

// expectNothingUnderWay holds a server to have given up on answers that are not read.
func (s *server) expectNothingUnderWay(t *testing.T) {
	t.Helper()
	if held, err := s.series("topsail_gateway_inflight_bytes "); held > 0 || err != nil {
		t.Errorf("%v bytes are under way still, %v", held, err)
	}
}

// sip has all clients read a little again and again, until it is over.
func (all *crowd) sip(bytes int, every, lasts time.Duration) {
	b := make([]byte, bytes)
	for over := time.Now().Add(lasts); time.Now().Before(over); {
		next := time.Now().Add(every)
		for _, c := range all.conns {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, _ = c.Read(b)
		}
		time.Sleep(time.Until(next))
	}
}

// pipelined is clients that send many requests at once and read no answers.
func pipelined() attack {
	const n = 50
	return attack{
		name: fmt.Sprintf("%d pipeline thousands and do not read", n),
		run: func(t *testing.T, s *server) {
			good, bad := post("/target/predict", `{"input":[1]}`), post("/target/predict", `{"input":`)
			many := ""
			for range 1000 {
				many += good + bad
			}
			all := s.crowd(t, s.gateway, n, 100, nil, nil)
			defer all.leave()
			for i, c := range all.conns {
				_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
				_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
				_, _ = io.WriteString(c, many[i:]) // all but the first begin in the middle of a request
			}
			time.Sleep(4 * time.Second)
		},
		outside: n * 1 << 20,
	}
}
