package openaiengine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// pipes is a listener whose connections are pipes, for a server in a bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	gone  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.gone) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.gone:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rig is an engine of a test, and what it was asked.
type rig struct {
	*testing.T
	*engine
	log      bytes.Buffer
	listener *pipes

	mu      sync.Mutex // guards the following
	answers http.HandlerFunc
	path    string
	request map[string]any
}

func testConfig() Config {
	return Config{URL: "http://engine/v1", Model: "qwen", APIKey: "k", ReadyPath: "/health", MetricsPath: "/metrics", Idle: time.Minute, ForwardCancel: true}
}

// atEngine runs a test in a bubble in which an engine answers requests with handle.
func atEngine(t *testing.T, cfg Config, handle http.HandlerFunc, run func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, answers: handle}
		cfg.Log = slog.New(slog.NewTextHandler(&r.log, nil))
		p := &pipes{conns: make(chan net.Conn), gone: make(chan struct{})}
		cfg.dial, r.listener = p.dial, p
		e, err := newEngine(t.Context(), cfg)
		require.NoError(t, err)
		r.engine = e
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Header.Get("Authorization") != "Bearer k" {
				t.Errorf("the key is %q", q.Header.Get("Authorization"))
			}
			if q.Method == http.MethodPost {
				body, err := io.ReadAll(q.Body)
				q.Body = io.NopCloser(bytes.NewReader(body))
				r.mu.Lock()
				r.path, r.request = q.URL.Path, nil
				if err := errors.Join(err, json.Unmarshal(body, &r.request)); err != nil {
					t.Error(err)
				}
				r.mu.Unlock()
			}
			r.mu.Lock()
			handle := r.answers
			r.mu.Unlock()
			handle(w, q)
		})}
		var running sync.WaitGroup
		running.Go(func() { server.Serve(p) })
		defer running.Wait()
		defer server.Close()
		defer e.server.Close()
		defer e.running.Wait()
		run(r)
	})
}

// handle has the engine answer otherwise from now on.
func (r *rig) handle(handle http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = handle
}

// answered is what a query got.
type answered struct {
	gocontainer.Result
	parts []string
}

// ask asks for a request, with parts or without.
func (r *rig) ask(ctx context.Context, request string, parts bool) answered {
	var mu sync.Mutex
	var all []string
	q := gocontainer.Query{Inputs: []serving.Value{serving.Text(request)}, Left: -1, Parts: parts}
	result := r.predict(ctx, &q, func(values ...serving.Value) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if values[0].DType != serving.JSON {
			r.Errorf("a part is %v", values[0].DType)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, string(values[0].Data))
		return nil
	})
	mu.Lock()
	defer mu.Unlock()
	return answered{result, slices.Clone(all)}
}

// expect compares an output with JSON.
func (r *rig) expect(a answered, want string) {
	r.Helper()
	if a.Err != nil {
		r.Error(a.Err)
		return
	}
	var got, wanted any
	if err := errors.Join(json.Unmarshal(a.Output.Data, &got), json.Unmarshal([]byte(want), &wanted)); err != nil || !reflect.DeepEqual(got, wanted) || a.Output.DType != serving.JSON {
		r.Errorf("the output is %s\nnot %s (%v)", a.Output.Data, want, err)
	}
}

func (r *rig) metric(name string) float64 {
	for _, m := range r.metrics() {
		if m.Name == name {
			return m.Value
		}
	}
	return math.NaN()
}

// stream writes events as they are, then [DONE].
func stream(chunks ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, c := range append(chunks, "[DONE]") {
			fmt.Fprintf(w, "data: %s\n\n", c)
			w.(http.Flusher).Flush()
		}
	}
}

const chat = `{"model": "ours", "messages": [{"role": "user", "content": "<hi>"}], "temperature": 0.5}`
