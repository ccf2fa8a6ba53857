package httpapi

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/internal/connlimit"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

func zlibbed(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

func TestContentEncoding(t *testing.T) {
	const limit = 1000
	s := start(t, Config{MaxBodyBytes: limit}, newFake())
	full := `{"input":"` + strings.Repeat("x", limit-len(`{"input":""}`)) + `"}`
	for _, test := range []struct {
		encoding, body string
		status         int
		class          string
	}{
		{"gzip", gzipped(`{"input":"a"}`), 200, ""},
		{"GZIP", gzipped(full), 200, ""},
		{"deflate", zlibbed(full), 200, ""},
		{"identity", full, 200, ""},
		{"gzip", gzipped(full + " "), 413, "Body too large"},
		{"deflate", zlibbed(full + " "), 413, "Body too large"},
		{"gzip", gzipped(strings.Repeat(" ", 100_000)), 413, "Body too large"},
		{"gzip", `{"input":"a"}`, 400, "Bad request"},
		{"gzip", gzipped(full)[:20], 400, "Bad request"},
		{"gzip", gzipped(`{"input":"a"}`)[:30], 400, "Bad request"},
		{"gzip", gzipped(`{"input":"a"}`) + "more", 400, "Bad request"},
		{"deflate", zlibbed(`{"input":"a"}`) + "more", 400, "Bad request"},
		{"deflate", gzipped(`{"input":"a"}`), 400, "Bad request"},
		{"gzip", gzipped("unexpected EOF"), 400, "Json error"},
		{"br", full, 415, "Unsupported encoding"},
		{"gzip, gzip", gzipped(gzipped(full)), 415, "Unsupported encoding"},
	} {
		got := s.do(t, "POST", "/strings/predict", test.body, "Content-Encoding: "+test.encoding)
		if got.status != test.status {
			t.Errorf("%s %.20q: %d %s, want %d", test.encoding, test.body, got.status, got.body, test.status)
			continue
		}
		if test.status != 200 {
			if class, _ := got.refusal(t); class != test.class {
				t.Errorf("%s %.20q: %s, want %s", test.encoding, test.body, got.body, test.class)
			}
		}
	}
}

func TestBombIsNotInflated(t *testing.T) {
	s := New(Config{MaxBodyBytes: 64 << 10}, newFake(), nil, nil)
	var rc fasthttp.RequestCtx
	rc.Request.Header.SetContentEncoding("gzip")
	rc.Request.SetBodyString(gzipped(strings.Repeat(" ", 16<<20)))
	c := &conn{lease: s.config.Budget.Lease(), place: new(connlimit.Place)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := s.body(&rc, c)
	runtime.ReadMemStats(&after)
	if refused, ok := err.(*refusal); !ok || refused.status != 413 {
		t.Fatalf("got error %v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated for a limit of 64 KiB", n)
	}
}

// The client must see the refusal although it is still sending.
func TestTooLargeBody(t *testing.T) {
	s := start(t, Config{MaxBodyBytes: 1 << 20}, newFake())
	for _, body := range []io.Reader{
		strings.NewReader(strings.Repeat("x", 8<<20)),
		struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 8<<20))}, // of unknown length: chunked
	} {
		response, err := http.Post("http://"+s.addr+"/strings/predict", "", body)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		response.Body.Close()
		got := reply{status: response.StatusCode, header: response.Header, body: string(text)}
		if _, cause := got.refusal(t); got.status != 413 || !response.Close || !strings.Contains(cause, "more than 1048576 bytes") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// Forms are bodies like any other: nothing parses them before us.
func TestFormIsNotParsed(t *testing.T) {
	s := start(t, Config{}, newFake())
	for _, contentType := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		if got := s.do(t, "POST", "/strings/predict", `{"input":"a"}`, "Content-Type: "+contentType); got.status != 200 {
			t.Errorf("%s: %d %s", contentType, got.status, got.body)
		}
	}
}

// A connection must not hold on to the largest body that it ever carried.
func TestLargeBuffersAreNotKept(t *testing.T) {
	s := New(Config{}, newFake(), nil, nil)
	var rc fasthttp.RequestCtx
	rc.Init2(&conn{place: new(connlimit.Place)}, nil, false)
	rc.Request.Header.SetMethod("POST")
	rc.Request.SetBodyString(strings.Repeat("x", keepBytes+1))
	s.everyRequest(func(rc *fasthttp.RequestCtx) {
		send(rc, 200, append(buffer(rc), make([]byte, keepBytes+1)...))
	})(&rc)
	if n := len(rc.Response.Body()); n != keepBytes+1 {
		t.Errorf("answer of %d bytes", n)
	}
	if n := cap(rc.Request.Body()); n > keepBytes {
		t.Errorf("the request keeps %d bytes", n)
	}
	rc.Response.Reset()
	if n := cap(rc.Response.SwapBody(nil)); n > keepBytes {
		t.Errorf("the answer keeps %d bytes", n)
	}
}

func TestLargeAnswer(t *testing.T) {
	core := newFake()
	s := start(t, Config{}, core)
	c := s.dial(t)
	defer c.Close()
	for _, n := range []int{10, 1000, 1, 4000} {
		got := c.do(t, "POST", "/integers/predict", `{"input_batch":[[1]`+strings.Repeat(",[1,2]", n)+`]}`)
		want := `{"batch_predictions":[{"query_id":1,"output":1.0,"default":false}` +
			strings.Repeat(`,{"query_id":1,"output":2.0,"default":false}`, n) + `]}`
		if got.status != 200 || got.body != want {
			t.Errorf("batch of %d: %d, %d bytes, want %d", n+1, got.status, len(got.body), len(want))
		}
	}
	if n := len(core.queries()); n != 5015 {
		t.Errorf("%d queries reached the core", n)
	}
	if in := core.queries()[0].Input; in.Type != serving.Ints {
		t.Errorf("first input %v", in)
	}
}

// A large body is read into the buffer of one before, if that is large enough, and what has come is kept.
func TestLargeBodiesUseBuffersAgain(t *testing.T) {
	s := New(Config{}, newFake(), nil, slog.New(slog.DiscardHandler))
	c := &conn{lease: s.config.Budget.Lease(), bodies: &s.bodies, place: new(connlimit.Place)}
	large := bytes.Repeat([]byte("0123456789"), 50_000)
	for range 20 {
		body, err := s.readAll(bytes.NewReader(large), len(large), 0, &c.lease, nil)
		if err != nil || !bytes.Equal(body, large) {
			t.Fatalf("%d bytes, %v", len(body), err)
		}
		clear(body) // as another request will write to it
		c.large = body
		c.finish()
		if c.large != nil {
			t.Error("it is used by two")
		}
	}
	s.bodies.Put(new([]byte)) // too small
	if b := s.grown([]byte("abc"), 2*keepBytes); string(b) != "abc" || cap(b) < 2*keepBytes {
		t.Errorf("%q of %d", b, cap(b))
	}
}
