package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// running is a world in which things run, which a test makes up.
type running struct {
	*world
	served *API

	mu        sync.Mutex // guards what follows
	changed   chan struct{}
	list      []Replica
	ended     map[string]serving.ModelID // replicas that are no longer listed
	measures  int                        // batch limit of every replica
	traffic   []AppTraffic
	decided   []serving.Decision // the newest first
	cluster   Cluster
	looks     int // at the cluster
	done      []string
	refuses   error
	logs      func(ctx context.Context, query LogQuery) io.ReadCloser
	window    time.Duration
	asked     string
	scheduler SchedulerStatus
}

func runs(t testing.TB) *running {
	r := &running{world: having(t), changed: make(chan struct{})}
	r.served = &API{api: r.api}
	r.list = []Replica{
		{ID: "m-1", Model: "m", Version: "1", State: "ready", Name: "first"},
		{ID: "m-2", Model: "m", Version: "2", State: "starting"},
		{ID: "n-1", Model: "n", Version: "1", State: "ready"},
	}
	r.cluster = Cluster{Mode: "cluster", Processes: []Process{{Role: "gateway", Name: "g1", State: "ok"}},
		Alarms: []check.Finding{{State: check.Warn, Detail: "look", Kind: "app", Name: "a"}, {State: check.Warn, Detail: "see", Kind: "version", Name: "n:1"}}}
	sys := r.api.System
	sys.Store, sys.Replicas, sys.Scheduler, sys.Traffic = watchedStore{r}, runner{r}, decider{r}, counter{r}
	sys.Cluster = func(context.Context) Cluster {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.looks++
		return r.cluster
	}
	sys.Ask = func(_ context.Context, app string, body []byte) (Trial, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = app + string(body)
		return Trial{Status: 200, Answer: json.RawMessage(`{"output":3}`), Micros: 1500}, r.refuses
	}
	return r
}

func (r *running) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// change makes changes of the catalog, and says so to those who watch it.
func (r *running) change(t testing.TB, changes ...catalog.Change) {
	t.Helper()
	r.must(t, changes...)
	r.set(func() { close(r.changed); r.changed = make(chan struct{}) })
}

type watchedStore struct{ *running }

func (s watchedStore) Watch(ctx context.Context, fn func(*serving.Catalog)) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		fn(s.Catalog())
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

type runner struct{ r *running }

func (s runner) Replicas() []Replica {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return slices.Clone(s.r.list)
}

func (s runner) do(what string) error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.r.refuses == nil {
		s.r.done = append(s.r.done, what)
	}
	return s.r.refuses
}

func (s runner) Restart(_ context.Context, id string) error { return s.do("restart " + id) }
func (s runner) Drain(_ context.Context, id string) error   { return s.do("drain " + id) }

func (s runner) Logs(ctx context.Context, id string, query LogQuery) (io.ReadCloser, error) {
	if err := s.do("logs " + id); err != nil {
		return nil, err
	}
	return s.r.logs(ctx, query), nil
}

func (s runner) Ended(_ context.Context, id string) (serving.ModelID, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if version, ok := s.r.ended[id]; ok {
		return version, nil
	}
	return serving.ModelID{}, ErrNoReplica
}

type decider struct{ r *running }

func (d decider) Decisions(_ context.Context, n int, about serving.ModelID) ([]serving.Decision, error) {
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	var list []serving.Decision
	for _, one := range d.r.decided {
		if (about.Model == "" || one.Model == about.Model) && (about.Version == "" || one.Version == about.Version) && len(list) < n {
			list = append(list, one)
		}
	}
	return list, d.r.refuses
}

func (d decider) Scheduler(context.Context) (SchedulerStatus, error) { return d.r.scheduler, nil }

type counter struct{ r *running }

func (c counter) Now() TrafficNow {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	return TrafficNow{At: time.Unix(1e9, 0).UTC(), Window: 60, Apps: c.r.traffic}
}

func (c counter) Chosen(app string) []ModelTraffic {
	return []ModelTraffic{{ModelID: serving.ModelID{Model: "m", Version: "1"}, Chosen: 0.75, Answered: 1, Agreed: 0.5}}
}

func (c counter) App(name string, window time.Duration) AppSeries {
	c.r.set(func() { c.r.window = window })
	return AppSeries{App: name, Times: []int64{1}, Rate: []*float64{nil}}
}

func (c counter) Version(id serving.ModelID, window time.Duration) VersionSeries {
	c.r.set(func() { c.r.window = window })
	return VersionSeries{Model: id.Model, Version: id.Version}
}

func (c counter) Stages(id serving.ModelID, replica string, window time.Duration) VersionStages {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.window = window
	s := VersionStages{Model: id.Model, Version: id.Version, At: time.Unix(1e9, 0).UTC(), Stages: []StageTraffic{}}
	if id.Version == "1" {
		s.Window, s.Bottleneck = 60, "rank"
		s.Stages = append(s.Stages, StageTraffic{Stage: "rank", After: []string{"input"}, Workers: 2, Ready: 1, Waiting: 3})
		if replica != "" {
			s.Stages[0].Stage = "rank at " + replica
		}
	}
	return s
}

func (c counter) Performance(definitions []serving.Definition) *Performance {
	return measured{}.Performance(definitions)
}

func (c counter) Streams() map[string]*StreamNow { return nil }

func (c counter) Measured(r *Replica) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if r.Name != "" {
		r.BatchLimit = c.r.measures
	}
}

// reader is a client that reads an answer as it comes, in a bubble.
type reader struct {
	header http.Header
	cancel context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex // guards what follows
	status int
	got    bytes.Buffer
	stuck  chan struct{} // not nil: writes wait for it
}

func (c *reader) Header() http.Header { return c.header }
func (c *reader) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}
func (c *reader) Flush() {}
func (c *reader) Write(b []byte) (int, error) {
	c.mu.Lock()
	stuck := c.stuck
	c.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.Write(b)
}

// reads opens a path by the key of a name. The client leaves when the test ends.
func (r *running) reads(t testing.TB, name, path string) *reader {
	return r.readsAnswer(t, name, "GET", path, "", "")
}

// readsAnswer is reads for any request.
func (r *running) readsAnswer(t testing.TB, name, method, path, body, accept string) *reader {
	ctx, cancel := context.WithCancel(t.Context())
	c := &reader{header: http.Header{}, cancel: cancel, ended: make(chan struct{})}
	request := httptest.NewRequestWithContext(ctx, method, "/api/v1"+path, strings.NewReader(body))
	request.Header.Set("X-Api-Key", r.keys[name])
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", accept)
	go func() {
		defer close(c.ended)
		r.handler.ServeHTTP(c, request)
	}()
	synctest.Wait()
	return c
}

// leave has the client leave, and waits until nobody serves it.
func (c *reader) leave() {
	c.cancel()
	<-c.ended
}

func (c *reader) gone() bool {
	synctest.Wait()
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// take is what came since the last take.
func (c *reader) take() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.got.String()
	c.got.Reset()
	return text
}

// message is one of a stream of events.
type message struct{ name, data string }

// events are the messages since the last take, but for those of a kind.
func (c *reader) events(without ...string) []message {
	var list []message
	for piece := range strings.SplitSeq(c.take(), "\n\n") {
		name, data, ok := strings.Cut(piece, "\ndata: ")
		if name = strings.TrimPrefix(name, "event: "); ok && !slices.Contains(without, name) {
			list = append(list, message{name, data})
		}
	}
	return list
}

func kinds(list []message) string {
	var names []string
	for _, m := range list {
		names = append(names, m.name)
	}
	return strings.Join(names, " ")
}

func decoded[T any](t testing.TB, m message) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(m.data), &v); err != nil {
		t.Fatalf("%s %s: %v", m.name, m.data, err)
	}
	return v
}
