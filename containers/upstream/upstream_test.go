package upstream

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// A server may close a connection that it said it would keep. What finds it closed is sent again, on another one.
func TestAConnectionThatIsClosedMeanwhile(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { // one answer, and nothing to what follows
				defer nc.Close()
				in := bufio.NewReader(nc)
				q, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				body, _ := io.ReadAll(q.Body)
				if q.Header["Idempotency-Key"] != nil {
					t.Errorf("the header is sent: %q", q.Header)
				}
				fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				_, _ = http.ReadRequest(in)
			})
		}
	})
	s, err := New(Config{URL: "http://" + ln.Addr().String() + "/", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for i := range 5 {
		response, err := s.Post(t.Context(), "/x", nil, fmt.Append(nil, i))
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != fmt.Sprint(i) {
			t.Errorf("%s, %v", body, err)
		}
	}
	s.Close()
	ln.Close()
	serving.Wait()
}
