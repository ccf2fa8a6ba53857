package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/connlimit"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// announce opens connections that say that a body comes, and send nothing of it.
func (r *running) announce(t *testing.T, n int, path string) (list []*client) {
	t.Helper()
	for range n {
		c := r.dial(t)
		t.Cleanup(func() { c.Close() })
		c.send(t, "POST "+path+" HTTP/1.1\r\nHost: topsail\r\nContent-Length: 16000000\r\n\r\n")
		list = append(list, c)
	}
	return list
}

// TestAnnouncedBodiesTakeNothing: memory follows what has come, and not what is announced.
func TestAnnouncedBodiesTakeNothing(t *testing.T) {
	s := start(t, Config{}, newFake())
	s.do(t, "POST", "/strings/predict", `{"input":"a"}`)
	before := heap()
	s.announce(t, 200, "/strings/predict")
	deadline := time.Now().Add(time.Minute)
	for s.server.config.Budget.Used() < 200*2*smallBody && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("200 announced bodies of 16 MB take %d MiB", grown>>20)
	}
	if got := s.do(t, "POST", "/strings/predict", `{"input":"a"}`); got.status != 200 {
		t.Errorf("another client gets %d %s", got.status, got.body)
	}
}

// TestRefusedByTheHeader: what can be refused without the body is, before it comes.
func TestRefusedByTheHeader(t *testing.T) {
	core := newFake()
	core.apps["strings"].RequireKey = true
	s := start(t, Config{}, core)
	for path, status := range map[string]int{"/nothing/predict": 404, "/strings/predict": 401, "/strings": 404} {
		c := s.announce(t, 1, path)[0]
		got := c.read(t, "POST")
		if got.status != status || !got.close {
			t.Errorf("%s: %d %s, want %d and the end of the connection", path, got.status, got.body, status)
		}
	}
	c := s.dial(t)
	defer c.Close()
	c.send(t, "POST /doubles/predict HTTP/1.1\r\nHost: topsail\r\nContent-Length: 17000000\r\n\r\n")
	if got := c.read(t, "POST"); got.status != 413 || !got.close {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestTheLengthIsNotAClientsWord: the header in which the length of a large body is kept counts
// for nothing where a client sends it.
func TestTheLengthIsNotAClientsWord(t *testing.T) {
	c := start(t, Config{}, newFake()).dial(t)
	defer c.Close()
	body, want := `{"input":"`+strings.Repeat("x", 10_000)+`"}`, `"output":10000.0`
	mine := announcedLength + ": 3\r\n"
	for _, raw := range []string{
		fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", mine, len(body), body),
		fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", mine, len(body), body),
	} {
		c.send(t, "POST /strings/predict HTTP/1.1\r\nHost: topsail\r\n"+raw)
		if got := c.read(t, "POST"); got.status != 200 || !strings.Contains(got.body, want) {
			t.Errorf("%.60q: %d %s", raw, got.status, got.body)
		}
	}
}

// TestBudget: beyond it large requests are refused, and small ones are not.
func TestBudget(t *testing.T) {
	b := budget.New(1 << 20)
	s := start(t, Config{Budget: b}, newFake())
	large := `{"input":"` + strings.Repeat("x", 100_000) + `"}`
	c := s.dial(t)
	defer c.Close()
	for range 3 { // what is taken is given back
		if got := c.do(t, "POST", "/strings/predict", large); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	wait.Until(t, "that nothing is taken", func() bool { return b.Used() == 0 })
	other := b.Lease()
	if !other.Take((1<<20 - int(b.Used()) - 50_000) / 2) { // each byte counts twice
		t.Fatal("no room")
	}
	got := s.do(t, "POST", "/strings/predict", large)
	if class, _ := got.refusal(t); got.status != 503 || class != "No memory" || got.header.Get("Retry-After") != "1" || !got.close {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
	if got := s.do(t, "POST", "/strings/predict", `{"input":"a"}`); got.status != 200 {
		t.Errorf("a small request gets %d %s", got.status, got.body)
	}
	other.Release()
	if got := s.do(t, "POST", "/strings/predict", large); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	c.Close()
	wait.Until(t, "that nothing is taken", func() bool { return b.Used() == 0 })
}

// TestLargeAnswersTakeOfTheBudget: clients that do not read theirs cannot have them all.
func TestLargeAnswersTakeOfTheBudget(t *testing.T) {
	core := newFake()
	output, err := json.Marshal(strings.Repeat("x", 5<<20))
	require.NoError(t, err)
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		return serving.Prediction{QueryID: 1, Output: output}, nil
	}
	b := budget.New(32 << 20)
	s := start(t, Config{Budget: b}, core)
	answered, refused := 0, 0
	for range 20 {
		c := s.dial(t)
		defer c.Close()
		c.send(t, request("POST", "/strings/predict", `{"input":"a"}`))
		line, err := c.r.ReadString('\n')
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.Contains(line, " 200 "):
			answered++
		case strings.Contains(line, " 503 "):
			refused++
		}
	}
	if answered == 0 || answered > 3 || answered+refused != 20 {
		t.Errorf("%d were answered and %d refused", answered, refused)
	}
	if used := b.Used(); used > b.Limit() {
		t.Errorf("%d bytes are taken of %d", used, b.Limit())
	}
}

// TestLargeAnswersAreExpected: where the last answers of an app were large, there is to be room
// for another one before a model is asked for it.
func TestLargeAnswersAreExpected(t *testing.T) {
	core := newFake()
	core.catalog = &serving.Catalog{Apps: core.apps}
	output, err := json.Marshal(strings.Repeat("x", 1<<20))
	require.NoError(t, err)
	wait := make(chan struct{}, 1)
	wait <- struct{}{}
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		<-wait
		return serving.Prediction{QueryID: 1, Output: output}, nil
	}
	s := start(t, Config{Budget: budget.New(14 << 20)}, core)
	if got := s.do(t, "POST", "/strings/predict", `{"input":"a"}`); got.status != 200 {
		t.Fatalf("%d %.200s", got.status, got.body)
	}
	first := s.dial(t)
	defer first.Close()
	first.send(t, request("POST", "/strings/predict", `{"input":"b"}`))
	for len(core.queries()) < 2 {
		runtime.Gosched()
	}
	if got := s.do(t, "POST", "/strings/predict", `{"input":"c"}`); got.status != 503 {
		t.Errorf("without room: %d %.200s", got.status, got.body)
	}
	if n := len(core.queries()); n != 2 {
		t.Errorf("%d queries reached the core, and there is room for one", n)
	}
	wait <- struct{}{}
	if got := first.read(t, "POST"); got.status != 200 {
		t.Errorf("the one with room: %d %.200s", got.status, got.body)
	}
}

// TestHeavyBodiesWaitForASlot: what takes long to read waits for others like it, and not forever;
// what does not goes on.
func TestHeavyBodiesWaitForASlot(t *testing.T) {
	bubble(t, Config{}, newFake(), func(t *testing.T, s *piped) {
		for range cap(s.server.decoding) {
			s.server.decoding <- struct{}{}
		}
		packed := gzipped(`{"input":"` + strings.Repeat("x", heavyBody+100) + `"}`)
		began := time.Now()
		c := s.dial()
		if got := c.do(t, "POST", "/strings/predict", packed, "Content-Encoding: gzip"); got.status != 503 || !strings.Contains(got.body, "Busy") {
			t.Errorf("%d %s", got.status, got.body)
		}
		if took := time.Since(began); took < slotWithin || took > slotWithin+10*time.Millisecond {
			t.Errorf("it was refused after %v", took)
		}
		if got := c.do(t, "POST", "/strings/predict", `{"input":"a"}`); got.status != 200 {
			t.Errorf("a small one: %d %s", got.status, got.body)
		}
		time.AfterFunc(slotWithin/2, func() { <-s.server.decoding })
		if got := c.do(t, "POST", "/strings/predict", packed, "Content-Encoding: gzip"); got.status != 200 {
			t.Errorf("when its turn has come: %d %s", got.status, got.body)
		}
		if free := cap(s.server.decoding) - len(s.server.decoding); free != 1 {
			t.Errorf("%d turns are free", free)
		}
		c.Close()
	})
}

// TestSlowBody: a body that trickles is refused long before the time of a whole request.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := New(Config{ReadTimeout: time.Minute}, newFake(), nil, nil)
		ours, theirs := net.Pipe()
		l := api.newListener(nil)
		c := &conn{Conn: ours, lease: api.config.Budget.Lease(), place: new(connlimit.Place)}
		ended := make(chan error, 1)
		l.track(c, 0)
		go func() { ended <- api.server(t.Context(), l).ServeConn(c) }()
		var answer bytes.Buffer
		go io.Copy(&answer, theirs)
		fmt.Fprint(theirs, "POST /strings/predict HTTP/1.1\r\nHost: topsail\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", smallBody))
		began := time.Now()
		for {
			if _, err := theirs.Write([]byte("x")); err != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		<-ended
		if took := time.Since(began); took < bodyGrace || took > 2*bodyGrace {
			t.Errorf("it was refused after %v", took)
		}
		synctest.Wait()
		if !strings.Contains(answer.String(), " 408 ") {
			t.Errorf("it got %.200q", answer.String())
		}
	})
}
