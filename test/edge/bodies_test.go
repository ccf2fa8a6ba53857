//go:build edge

package edge

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// announced is clients that say that 16 MB come, and send nothing.
func announced(n int, app string, status int) attack {
	return attack{
		name: fmt.Sprintf("%d announce 16 MB, app %s", n, app),
		run: func(t *testing.T, s *server) {
			all := s.crowd(t, s.gateway, n, 400, nil, say(head("POST", "/"+app+"/predict", "Content-Length: 16000000")))
			defer all.leave()
			time.Sleep(3 * time.Second)
			all.expect(t, status)
		},
		outside: int64(n) * perConnection,
	}
}

// slowHeaders is clients that send a byte of their header now and then.
func slowHeaders() attack {
	const n = 500
	return attack{
		name: fmt.Sprintf("%d send slow headers", n),
		run: func(t *testing.T, s *server) {
			all := s.crowd(t, s.gateway, n, 500, nil, say("POST /target/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "))
			defer all.leave()
			all.trickle("x", time.Second, 11*time.Second)
			all.expect(t, 408)
		},
		outside: n * perConnection,
	}
}

// slowBodies is clients that send some of their bodies now and then: half of them of one that
// is small, and half of a large one.
func slowBodies() attack {
	const n = 500
	return attack{
		name: fmt.Sprintf("%d send slow bodies", n),
		run: func(t *testing.T, s *server) {
			i := 0
			all := s.crowd(t, s.gateway, n, 500, nil, func(c net.Conn) {
				i++
				say(head("POST", "/target/predict", fmt.Sprintf("Content-Length: %d", []int{4_000, 1_000_000}[i%2])))(c)
			})
			defer all.leave()
			all.trickle(strings.Repeat(" ", 100), time.Second, 11*time.Second)
			all.expect(t, 408)
		},
		outside: n * perConnection,
	}
}

// largeBodies is clients that send what takes long to read and has more bytes decoded: an array
// of a million zeros.
func largeBodies() attack {
	body := `{"input":[` + strings.Repeat("0,", 1_000_000) + "0]}"
	return repeated("8 send 1 million zeros, a second", 8, time.Second, post("/target/predict", body))
}

// bombs is clients that send what has a thousand times as many bytes unpacked.
func bombs() attack {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(`{"input":[` + strings.Repeat(" ", 16<<20-20) + `1]}`))
	w.Close()
	return repeated("16 send compressed bombs, again and again", 16, 0, post("/target/predict", packed.String(), "Content-Encoding: gzip"))
}

// deep is clients that send arrays in arrays.
func deep() attack {
	body := `{"x":` + strings.Repeat("[", 8_000_000) + strings.Repeat("]", 8_000_000) + `,"input":[1]}`
	a := repeated("8 send 8 million arrays in each other, a second", 8, time.Second, post("/target/predict", body))
	a.burst = largeBurst
	return a
}

// repeated is clients that send requests by turns for some seconds, at once or so often, each answer
// being read.
func repeated(name string, clients int, every time.Duration, requests ...string) attack {
	return attack{
		name: name,
		run: func(t *testing.T, s *server) {
			var strange, answered atomic.Int32
			side(clients, 6*time.Second, func(worker, n int) {
				defer time.Sleep(time.Until(time.Now().Add(every)))
				switch status, _, body, err := s.one(s.gateway, requests[(worker+n)%len(requests)]); {
				case status == 200 || status == 400 || status == 408 || status == 413:
					answered.Add(1)
				case status == 503:
					time.Sleep(100 * time.Millisecond)
				default:
					if strange.Add(1) == 1 {
						t.Logf("an answer was %d %.200s %v", status, body, err)
					}
				}
			})
			t.Logf("%d were answered", answered.Load())
			if answered.Load() == 0 || strange.Load() > 0 {
				t.Errorf("%d were answered, and %d strangely", answered.Load(), strange.Load())
			}
		},
	}
}
