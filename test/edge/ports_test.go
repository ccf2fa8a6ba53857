//go:build edge

package edge

import (
	"fmt"
	"testing"
	"time"
)

// otherPort is clients that do at the port for operators, or that for management, what the
// query port has to bear: a third is silent, a third sends a header and no body, and a third
// asks and stays.
func otherPort(name string, address func(*server) string, path string) attack {
	const n = 1500
	return attack{
		name: fmt.Sprintf("%d at the %s port", n, name),
		run: func(t *testing.T, s *server) {
			addr := address(s)
			all := &crowd{}
			for _, first := range []string{"", head("POST", path, "Content-Length: 100000"), head("GET", path)} {
				some := s.crowd(t, addr, n/3, 500, nil, say(first))
				all.conns = append(all.conns, some.conns...)
			}
			defer all.leave()
			for range 5 {
				if status, _, body, err := s.one(addr, head("GET", "/health/live")); err != nil || status >= 500 {
					t.Errorf("another client gets %d %.200s %v", status, body, err)
				}
				time.Sleep(400 * time.Millisecond)
			}
			if open := s.state(t).descriptors - s.first.descriptors; open > otherConnections+strayFiles {
				t.Errorf("%d connections are open, and %d may be", open, otherConnections)
			}
		},
		outside: n * perConnection,
	}
}

// otherConnections bounds those of the ports for operators and management, each.
const otherConnections = 1024
