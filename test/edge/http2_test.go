//go:build edge

package edge

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// noHTTP2 is clients of the port for gRPC that do not speak HTTP/2, or stop doing so: they are cut off, and
// others are answered.
func noHTTP2() attack {
	const n = 400
	const preface, settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	first := []string{
		"", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", preface, preface + strings.Repeat("\xff", 100),
		preface + settings + "\xff\xff\xff\x00\x00\x00\x00\x00\x01",                 // a frame of 16 MiB
		preface + settings + "\x00\x00\x04\x01\x04\x00\x00\x00\x01\xff\xff\xff\xff", // headers that are none
	}
	return attack{
		name: fmt.Sprintf("%d do not speak HTTP/2 at the port for gRPC", n),
		run: func(t *testing.T, s *server) {
			i := 0
			all := s.crowd(t, s.grpc, n, 400, nil, func(c net.Conn) {
				say(first[i%len(first)])(c)
				i++
			})
			defer all.leave()
			s.answersCalls(t)
			s.awaitEnded(t, all)
		},
		outside: n * perConnection,
	}
}
