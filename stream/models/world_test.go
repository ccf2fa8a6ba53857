package models

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/test/pipes"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/artifact"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/traffic"
)

// patience bounds every wait.
const patience = time.Minute

// world is the management API as it is, in front of a store, and a broker.
type world struct {
	*testing.T
	*broker
	store   *filestore.Store
	bundles *artifact.Store
	net     pipes.Network
	url     string // of the API
	handler http.Handler
	cut     atomic.Pointer[func(r *http.Request, answered bool) (fail bool)] // of the test: requests that fail, before or after they are done
	calls   atomic.Int64                                                     // that change something
	job     *Job
	stop    func()
}

// nothing is what the API shows of replicas.
type nothing struct{}

func (nothing) Replicas() []api.Replica               { return nil }
func (nothing) Restart(context.Context, string) error { return api.ErrNoReplica }
func (nothing) Drain(context.Context, string) error   { return api.ErrNoReplica }
func (nothing) Ended(context.Context, string) (serving.ModelID, error) {
	return serving.ModelID{}, api.ErrNoReplica
}
func (nothing) Logs(context.Context, string, api.LogQuery) (io.ReadCloser, error) {
	return nil, api.ErrNoReplica
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, false)
}

func newWorldWith(t *testing.T, requireKeys bool) *world {
	t.Helper()
	dir := t.TempDir()
	store, err := filestore.Open(filepath.Join(dir, "data"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	folder, err := artifact.OpenFolder(filepath.Join(dir, "bundles"))
	require.NoError(t, err)
	bundles, err := artifact.Open(artifact.Config{Bucket: folder, Spool: filepath.Join(dir, "bundles"), MaxBytes: 1 << 20})
	require.NoError(t, err)
	system := &api.System{Mode: "local", Store: store, Audit: store, Artifacts: bundles, Replicas: nothing{}, Traffic: traffic.New(traffic.Config{}), Gateway: func() string { return "" }}
	w := &world{T: t, broker: newBroker(), store: store, bundles: bundles}
	guard := auth.New(auth.Config{Catalog: store.Catalog, Require: requireKeys})
	handler := guard.Handler(api.New(system, guard, api.Options{}))
	w.handler = http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		cut := w.cut.Load()
		if cut != nil && (*cut)(r, false) {
			panic(http.ErrAbortHandler)
		}
		if r.Method != http.MethodGet {
			w.calls.Add(1)
		}
		handler.ServeHTTP(to, r)
		if cut != nil && (*cut)(r, true) {
			panic(http.ErrAbortHandler)
		}
	})
	w.url = w.net.Serve(t, w.handler)
	return w
}

// fail has requests fail as a function says, or none.
func (w *world) fail(cut func(r *http.Request, answered bool) bool) {
	if cut == nil {
		w.cut.Store(nil)
		return
	}
	w.cut.Store(&cut)
}

// config is that of the job, on the world's broker.
func (w *world) config() Config {
	return Config{
		Config: stream.Config{
			Name: "models", Consumer: w.broker, Streams: []string{"in"}, Output: "out", DeadLetter: "dead", Drain: time.Millisecond,
			Log: slog.New(slog.NewTextHandler(w.Output(), nil)),
		},
		API: apiclient.Options{Server: w.url, HTTP: w.net.Client()}, Locations: Locations{Client: w.net.Client()}, Python: "3.11", Patience: 100 * time.Millisecond,
	}
}

// run runs a job until stop, or the end of the test.
func (w *world) run(change func(*Config)) {
	w.Helper()
	cfg := w.config()
	if change != nil {
		change(&cfg)
	}
	job, err := New(cfg)
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := job.Run(ctx); err != nil {
			w.Error(err)
		}
		w.Close()
	})
	w.job, w.stop = job, func() { cancel(); running.Wait() }
	w.Cleanup(w.stop)
}

// until waits for something that comes by itself.
func (w *world) until(what string, done func() bool) {
	w.Helper()
	wait.Until(w, what, done, func() string { return fmt.Sprintf("the job says %+v", w.job.Status()) })
}

// settle waits until everything that was written is committed.
func (w *world) settle() {
	w.Helper()
	w.until("end", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.done == len(w.streams["in"])
	})
}

// outcome is what became of an update, as "outcome" or "kind: reason".
type outcome struct{ id, what string }

// outcomesOf are what became of the updates, in the order of the streams.
func (w *world) outcomesOf() (all []outcome) {
	w.Helper()
	for _, r := range w.read("out") {
		format, err := stream.FormatOf(r.Header(stream.HeaderContentType), r.Value)
		require.NoError(w, err)
		ack, err := ParseAcknowledgement(r.Value, format)
		require.NoError(w, err)
		all = append(all, outcome{ack.UUID, ack.Outcome})
	}
	for _, r := range w.read("dead") {
		var u struct{ UUID string }
		_ = json.Unmarshal(r.Value, &u) // there may be garbage
		all = append(all, outcome{u.UUID, r.Header(stream.HeaderKind) + ": " + r.Header(stream.HeaderReason)})
	}
	return all
}

func (w *world) want(want ...outcome) {
	w.Helper()
	got := w.outcomesOf()
	if len(got) != len(want) {
		w.Fatalf("outcomes %q, want %q", got, want)
	}
	for i := range want {
		if got[i].id != want[i].id || !strings.HasPrefix(got[i].what, want[i].what) {
			w.Errorf("outcome %q, want %q", got[i], want[i])
		}
	}
}

// source is a small model in Python, by its version.
func source(version string) *Model {
	return &Model{
		Name: "wine", Version: version, InputType: "doubles", Kind: "python", Entry: "wine:predict", Python: "3.11",
		Data: []byte("def predict(inputs):\n    return [" + version + " for _ in inputs]\n"),
	}
}

// message writes an update of a model.
func message(id string, m *Model) serving.StreamMessage {
	u := Update{UUID: id, Model: m}
	return serving.StreamMessage{Stream: "in", Key: []byte(m.Name), Value: u.AppendJSON(nil)}
}

func text(value string, args ...any) serving.StreamMessage {
	return serving.StreamMessage{Stream: "in", Value: fmt.Appendf(nil, value, args...)}
}

// app registers one.
func (w *world) app(name string, models ...string) {
	w.Helper()
	app := serving.App{Name: name, InputType: serving.Doubles, SLO: serving.Duration(time.Second), DefaultOutput: "-1", Models: models}
	if _, err := w.store.Apply(w.Context(), catalog.PutApp{App: app}, 0); err != nil {
		w.Fatal(err)
	}
}

// apply changes the catalog.
func (w *world) apply(change catalog.Change) {
	w.Helper()
	if _, err := w.store.Apply(w.Context(), change, 0); err != nil {
		w.Fatal(err)
	}
}

// version finds one of the model wine.
func (w *world) version(name string) *serving.Version {
	return w.store.Catalog().Version(serving.ModelID{Model: "wine", Version: name})
}

// versions are the names of those of a model.
func (w *world) versions(model string) []string {
	m := w.store.Catalog().Models[model]
	if m == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.Versions))
}

// current is the current version of a model.
func (w *world) current(model string) string {
	w.Helper()
	if m := w.store.Catalog().Models[model]; m != nil {
		return m.Current
	}
	return ""
}
