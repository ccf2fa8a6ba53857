//go:build edge

package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// many is how many names an attack makes up, and perSecond how fast.
const many, perSecond = 10_000, 2_000

// names is clients that make up apps, users, contexts or ids. They may not make a series for
// each, nor take much memory.
func names(what string, requests, status int, request func(n int) string) attack {
	return attack{
		name: fmt.Sprintf("%d distinct %s", many, what),
		run: func(t *testing.T, s *server) {
			before, err := s.metrics()
			require.NoError(t, err)
			var next, strange atomic.Int32
			askers, begun := make([]asker, 4), time.Now()
			side(len(askers), time.Minute, func(worker, _ int) {
				n := int(next.Add(1))
				if n > requests {
					return
				}
				time.Sleep(time.Until(begun.Add(time.Duration(n) * many / time.Duration(requests) * time.Second / perSecond)))
				if got, err := askers[worker].ask(s.gateway, request(n)); (got != status || err != nil) && strange.Add(1) == 1 {
					t.Logf("number %d: %d %v", n, got, err)
				}
			}, func() bool { return int(next.Load()) >= requests })
			after, err := s.metrics()
			require.NoError(t, err)
			if strange.Load() > 0 {
				t.Errorf("%d of %d were not answered with %d", strange.Load(), requests, status)
			}
			if more := strings.Count(string(after), "\n") - strings.Count(string(before), "\n"); more > 200 {
				t.Errorf("the metrics have %d lines more", more)
			}
		},
		outside: many * 2 << 10, // a state, or a record
	}
}

// asker asks on one connection.
type asker struct {
	conn net.Conn
	r    *bufio.Reader
}

func (a *asker) ask(addr, request string) (status int, err error) {
	if a.conn == nil {
		if a.conn, err = net.DialTimeout("tcp", addr, time.Second); err != nil {
			return 0, err
		}
		a.r = bufio.NewReader(a.conn)
	}
	defer func() {
		if err != nil {
			a.conn.Close()
			a.conn = nil
		}
	}()
	_ = a.conn.SetDeadline(time.Now().Add(15 * time.Second))
	if _, err := io.WriteString(a.conn, request); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(a.r, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// distinct is the attacks with names.
func distinct() []attack {
	return []attack{
		names("apps and request ids", many, 404, func(n int) string {
			return post(fmt.Sprintf("/app-%d/predict", n), `{"input":[1]}`, fmt.Sprintf("X-Request-Id: id-%d", n))
		}),
		names("users and contexts that ask", many, 200, func(n int) string {
			return post("/learns/predict", fmt.Sprintf(`{"input":[1],"uid":"user-%d","context":"context-%d"}`, n, n))
		}),
		names("users and ids that teach", many/100, 200, func(n int) string {
			var pieces []string
			for i := range 100 {
				pieces = append(pieces, fmt.Sprintf(`{"uid":"user-%[1]d","context":"context-%[1]d","feedback_id":"id-%[1]d","input":[1],"label":1}`, n*100+i))
			}
			return post("/learns/update", `{"feedback_batch":[`+strings.Join(pieces, ",")+`]}`)
		}),
	}
}
