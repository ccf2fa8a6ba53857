package httpapi

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/internal/connlimit"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// Answers to pipelined requests leave as they are made, in the order of the requests: a
// slow one does not hold back those before it.
func TestPipelinedAnswersAreNotHeldBack(t *testing.T) {
	for _, header := range []string{"X-Plain: 1", "Via: HTTP/1.1 proxy"} {
		core, release := newFake(), make(chan struct{})
		core.answer = func(_ context.Context, q *serving.Query) (serving.Prediction, error) {
			if string(q.Input.Data) == "slow" {
				<-release
			}
			output, err := serving.NewOutput(serving.Text(string(q.Input.Data)))
			return serving.Prediction{QueryID: 1, Output: output.JSON}, err
		}
		s := start(t, Config{}, core)
		c, goOn := s.dial(t), sync.OnceFunc(func() { close(release) })
		t.Cleanup(goOn) // before the server ends
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		one := func(input string) string { return request("POST", "/strings/predict", `{"input":"`+input+`"}`, header) }
		large := strings.Repeat("GET / HTTP/1.1 ", 10_000)
		c.send(t, one("first")+one("POST / HTTP/1.1")+one(large)+one("slow")+one("last"))
		for _, want := range []string{"first", "POST / HTTP/1.1", large, "slow", "last"} {
			if want == "slow" { // not before: the answers before it are read while it waits
				goOn()
			}
			if got := c.read(t, "POST"); got.status != 200 || !strings.Contains(got.body, want) {
				t.Fatalf("%s: got %d %s, want that of %s", header, got.status, got.body, want)
			}
		}
		c.Close()
	}
}

// Whatever comes in whatever pieces is read as it is.
func TestReadsEndBeforeTheNextRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"POST / HTTP/1.1\r\n\r\n", " HTTP/1.", "POST", "GET /a HTTP/1.0\r\n", "x", " ", "{}", "\r\n"})
		sent := []byte(strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(t, "sent"), ""))
		size := rapid.IntRange(1, 64).Draw(t, "size")
		c := &conn{Conn: readOnly{r: bytes.NewReader(sent)}, place: new(connlimit.Place)}
		var got []byte
		for b := make([]byte, size); ; {
			n, err := c.Read(b)
			got = append(got, b[:n]...)
			if at := nextRequest(b[:n]); at > 0 {
				t.Fatalf("%q reaches into the next request, which begins at %d", b[:n], at)
			}
			if err == io.EOF {
				break
			}
			if n == 0 {
				t.Fatal("nothing was read")
			}
		}
		if !bytes.Equal(got, sent) {
			t.Fatalf("read %q of %q", got, sent)
		}
	})
}

// readOnly is a connection that gives what r has.
type readOnly struct {
	net.Conn
	r io.Reader
}

func (r readOnly) Read(b []byte) (int, error) { return r.r.Read(b) }

// A pipeline of any length lets others be heard.
func TestPipelinesPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 1 + 100*pipelineBurst
		one := request("GET", "/health", "")
		c := &conn{Conn: readOnly{r: strings.NewReader(strings.Repeat(one, requests))}, place: new(connlimit.Place)}
		began := time.Now()
		for b := make([]byte, len(one)*requests); ; {
			if _, err := c.Read(b); err == io.EOF {
				break
			}
		}
		if took := time.Since(began); took != 100*pipelinePause {
			t.Errorf("%d requests took %v", requests, took)
		}
	})
}

// A reset between two requests is the end, and not a request that is wrong.
func TestResets(t *testing.T) {
	for _, waits := range []bool{false, true} {
		c := &conn{Conn: failing{err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}, place: new(connlimit.Place)}
		if waits {
			c.place.Wait()
		}
		if _, err := c.Read(make([]byte, 8)); (err == io.EOF) != waits {
			t.Errorf("waiting %v: %v", waits, err)
		}
	}
}

// failing is a connection that cannot be read.
type failing struct {
	net.Conn
	err error
}

func (f failing) Read([]byte) (int, error) { return 0, f.err }
