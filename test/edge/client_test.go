//go:build edge

package edge

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// post is a request, as a client writes it.
func post(path, body string, header ...string) string {
	return head("POST", path, append(header, fmt.Sprintf("Content-Length: %d", len(body)))...) + body
}

// head is the head of a request. It has a Host, unless that is among the header lines.
func head(method, path string, header ...string) string {
	host := "Host: 127.0.0.1\r\n"
	for _, line := range header {
		if strings.HasPrefix(line, "Host:") {
			host = ""
		}
	}
	b := method + " " + path + " HTTP/1.1\r\n" + host
	for _, line := range header {
		b += line + "\r\n"
	}
	return b + "\r\n"
}

// crowd is the connections of many clients, which need no goroutine each.
type crowd struct{ conns []net.Conn }

// crowd connects so many clients, so many a second, from loopback addresses by turns.
// Each does something first. One that cannot connect is left out.
func (s *server) crowd(t *testing.T, addr string, n, perSecond int, from []string, first func(c net.Conn)) *crowd {
	t.Helper()
	all := &crowd{}
	begun, failed := time.Now(), 0
	for i := range n {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		d := net.Dialer{Timeout: time.Second}
		if len(from) > 0 {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from[i%len(from)])}
		}
		c, err := d.Dial("tcp", addr)
		if err != nil {
			failed++
			continue
		}
		all.conns = append(all.conns, c)
		if first != nil {
			first(c)
		}
	}
	if failed > n/10 {
		t.Errorf("%d of %d attackers could not connect", failed, n)
	}
	return all
}

// say has a client say something once.
func say(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

// trickle has all clients send a text again and again, until it is over.
func (all *crowd) trickle(text string, every, lasts time.Duration) {
	for over := time.Now().Add(lasts); time.Now().Before(over); {
		next := time.Now().Add(every)
		for _, c := range all.conns {
			_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
			_, _ = io.WriteString(c, text)
		}
		time.Sleep(time.Until(next))
	}
}

// closed counts the clients whose connections the server has ended, by the status of the
// answer that they got before, 0 where there was none; still open ones are -1.
func (all *crowd) closed() map[int]int {
	counts := map[int]int{}
	b := make([]byte, 64<<10)
	for _, c := range all.conns {
		status := 0
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		for got := 0; ; {
			n, err := c.Read(b)
			if got == 0 && n >= 12 {
				_, _ = fmt.Sscanf(string(b[:12]), "HTTP/1.1 %d", &status)
			}
			got += n
			if e, ok := err.(net.Error); ok && e.Timeout() {
				status = -1
			}
			if err != nil || got > 1<<20 {
				break
			}
		}
		counts[status]++
	}
	return counts
}

// leave ends the clients. They vanish: what they have not read is no business of theirs.
func (all *crowd) leave() {
	for _, c := range all.conns {
		vanish(c)
	}
}

// vanish ends a connection by a reset.
func vanish(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

// side has workers do something again and again until the time is over, or it is done.
func side(workers int, lasts time.Duration, do func(worker, n int), done ...func() bool) {
	var all sync.WaitGroup
	over := time.Now().Add(lasts)
	for w := range workers {
		all.Go(func() {
			for n := 0; time.Now().Before(over) && (len(done) == 0 || !done[0]()); n++ {
				do(w, n)
			}
		})
	}
	all.Wait()
}

// one asks once, on a connection of its own, and returns the status and the body.
func (s *server) one(addr, request string) (status int, header http.Header, body string, err error) {
	c, err := s.dial(addr)
	if err != nil {
		return 0, nil, "", err
	}
	defer c.Close()
	return exchange(c, request)
}

// expect holds the clients to have been answered so, and their connections to be closed.
func (all *crowd) expect(t *testing.T, status int) {
	t.Helper()
	if counts := all.closed(); counts[status] != len(all.conns) {
		t.Errorf("all were to get %d and be cut off; by status they were %v (0: no answer, -1: open)", status, counts)
	}
}

// expectEnded holds a server to have ended the connections of those clients, while they are
// still there. They need not know: what they have not read is before that.
func (s *server) expectEnded(t *testing.T, all *crowd) {
	t.Helper()
	if open := s.state(t).descriptors - s.first.descriptors; open > strayFiles {
		t.Errorf("%d of the connections of %d clients are still open", open, len(all.conns))
	}
}
