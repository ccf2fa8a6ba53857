package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

// fakeCore answers every query with its number of elements, and remembers it.
type fakeCore struct {
	apps   map[string]*serving.App
	answer func(ctx context.Context, q *serving.Query) (serving.Prediction, error) // nil: the number of elements

	parts   func(q *serving.Query) (serving.Parts, error)
	timed   func(t *serving.Timing) // nil: where the time went is not known
	catalog *serving.Catalog        // what the server hears of; nil: nothing

	updater Updater                                                                 // the fake itself, unless a test says otherwise
	learn   func(ctx context.Context, f *serving.Feedback) (serving.Learned, error) // nil: all is joined with its record

	mu    sync.Mutex // guards the following
	seen  []serving.Query
	heard []serving.Feedback
}

func newFake() *fakeCore {
	apps := map[string]*serving.App{}
	for t := serving.Bytes; t <= serving.Strings; t++ {
		apps[t.String()] = &serving.App{Name: t.String(), InputType: t}
	}
	f := &fakeCore{apps: apps}
	f.updater = f
	return f
}

func (f *fakeCore) App(name string) (*serving.App, error) {
	if f.apps == nil {
		return nil, serving.ErrNoCatalog
	}
	if app := f.apps[name]; app != nil {
		return app, nil
	}
	return nil, serving.ErrUnknownApp
}

func (f *fakeCore) predict(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
	f.mu.Lock()
	f.seen = append(f.seen, *q)
	f.mu.Unlock()
	if f.answer != nil {
		return f.answer(ctx, q)
	}
	output, err := serving.NewOutput(serving.Number(float64(q.Input.Len())))
	return serving.Prediction{QueryID: 1, Output: output.JSON}, err
}

func (f *fakeCore) Stream(q *serving.Query) (serving.Parts, error) {
	f.mu.Lock()
	f.seen = append(f.seen, *q)
	f.mu.Unlock()
	return f.parts(q)
}

func (f *fakeCore) Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error) {
	ps := make([]serving.Prediction, len(qs))
	for i := range qs {
		p, err := f.predict(ctx, &qs[i])
		if err != nil {
			return nil, err
		}
		ps[i] = p
	}
	if f.timed != nil && len(qs) > 0 && qs[0].Timing != nil {
		f.timed(qs[0].Timing)
	}
	return ps, nil
}

// Ready says that all is ready but a version "cold".
func (f *fakeCore) Ready(app, version string) (bool, error) {
	_, err := f.App(app)
	return err == nil && version != "cold", err
}

// Wake remembers nothing.
func (f *fakeCore) Wake(app, _ string) error {
	_, err := f.App(app)
	return err
}

// Inferences are made up.
func (f *fakeCore) Inferences(string) serving.Inferences {
	return serving.Inferences{Succeeded: 3, Defaults: 1, Cached: 2, Asked: 2, Took: 8 * time.Millisecond}
}

func (f *fakeCore) Feedback(ctx context.Context, list []serving.Feedback) ([]serving.Learned, error) {
	f.mu.Lock()
	f.heard = append(f.heard, list...)
	f.mu.Unlock()
	learned := make([]serving.Learned, len(list))
	for i := range list {
		learned[i] = serving.Learned{QueryID: list[i].QueryID, Joined: serving.FromRecord}
		if f.learn == nil {
			continue
		}
		var err error
		if learned[i], err = f.learn(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	return learned, nil
}

func (f *fakeCore) feedback() []serving.Feedback {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.heard)
}

func (f *fakeCore) queries() []serving.Query {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// running is a server over loopback, which ends with the test.
type running struct {
	core   *fakeCore
	server *Server
	log    *journal.Journal
	addr   string
	stop   func() error // ends the server and returns what Run did
}

func start(t *testing.T, config Config, core *fakeCore) *running {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return startOn(t, config, core, ln)
}

func startOn(t *testing.T, config Config, core *fakeCore, ln net.Listener) *running {
	t.Helper()
	log := &journal.Journal{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	server := New(config, core, core.updater, slog.New(slog.NewTextHandler(log, nil)))
	if core.catalog != nil {
		server.Serve(core.catalog)
	}
	go func() { done <- server.Run(ctx, ln) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return &running{core: core, server: server, log: log, addr: ln.Addr().String(), stop: stop}
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	body   string
	close  bool
}

// refusal reads the body of an answer that is not 200.
func (r reply) refusal(t *testing.T) (class, cause string) {
	t.Helper()
	var body struct{ Error, Cause string }
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || body.Error == "" || body.Cause == "" {
		t.Errorf("status %d: %q is not an error body: %v", r.status, r.body, err)
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("status %d: Content-Type %q", r.status, got)
	}
	return body.Error, body.Cause
}

// do sends one request on a connection of its own; header is "Name: value" lines.
func (r *running) do(t *testing.T, method, path, body string, header ...string) reply {
	t.Helper()
	c := r.dial(t)
	defer c.Close()
	return c.do(t, method, path, body, header...)
}

// client is one connection that the test writes to by hand.
type client struct {
	net.Conn
	r *bufio.Reader
}

func newClient(c net.Conn) *client { return &client{c, bufio.NewReader(c)} }

func (r *running) dial(t *testing.T) *client {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	return newClient(c)
}

func (c *client) do(t *testing.T, method, path, body string, header ...string) reply {
	t.Helper()
	c.send(t, request(method, path, body, header...))
	return c.read(t, method)
}

func request(method, path, body string, header ...string) string {
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: topsail"}, header...)
	if body != "" {
		lines = append(lines, "Content-Length: "+strconv.Itoa(len(body)))
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

func (c *client) send(t *testing.T, raw string) {
	t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
}

// read reads the answer to a request of the given method.
func (c *client) read(t *testing.T, method string) reply {
	t.Helper()
	response, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("reading the answer's body: %v", err)
	}
	return reply{response.StatusCode, response.Header, string(body), response.Close}
}

// closed waits for the server to close the connection.
func (c *client) closed(t *testing.T) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	b, err := c.r.ReadByte()
	if timeout, ok := errors.AsType[net.Error](err); err == nil || ok && timeout.Timeout() {
		t.Errorf("the connection should be closed: got byte %q, %v", b, err)
	}
}
