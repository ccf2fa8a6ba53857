package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// lossy is a store whose replies get lost now and then.
type lossy struct {
	*filestore.Store
	mu   sync.Mutex // guards what follows
	n    int
	lose bool
}

func (l *lossy) AddUsage(ctx context.Context, r serving.UsageReport) error {
	err := l.Store.AddUsage(ctx, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.lose && l.n%2 == 1 {
		return errors.Join(errors.New("the reply is lost"), err)
	}
	return err
}

// TestUsageIsKept has gateways come and go, whose reports get lost: what clients got is
// counted once, the last second of each included.
func TestUsageIsKept(t *testing.T) {
	bubble(t, func(t *world) {
		file, err := filestore.Open(t.TempDir(), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		defer file.Close()
		v := newVersion("m", "1")
		for _, c := range []catalog.Change{
			catalog.PutVersion{Version: *v},
			catalog.PutApp{App: serving.App{Name: "double-it", InputType: serving.Doubles, DefaultOutput: "-1.0", SLO: serving.Duration(20 * time.Second), Models: []string{"m"}}},
		} {
			if _, err := file.Apply(t.ctx, c, 0); err != nil {
				t.Fatal(err)
			}
		}
		t.replicas.Put(t.replica("m/0", file.Catalog().Version(v.ModelID), func(inputs []serving.Value) []gocontainer.Result {
			time.Sleep(time.Millisecond)
			results := make([]gocontainer.Result, len(inputs))
			for i := range results {
				results[i].Output = serving.Number(1)
			}
			return results
		}))
		store := &lossy{Store: file}
		const gateways, queries = 3, 20
		for n := range gateways {
			store.lose = n < gateways-1
			ctx, cancel := context.WithCancel(t.ctx)
			g, ended := t.gateway(ctx, nil, gateway.Config{Catalog: store, Usage: store, CacheBytes: 1 << 20})
			t.ready(g, 1)
			for i := range queries {
				q := serving.Query{App: "double-it", Received: time.Now(), Input: serving.Input{Type: serving.Doubles, Data: []byte{byte(i / 2), byte(n), 0, 0, 0, 0, 0, 0}}}
				if p, err := predict(ctx, g, q); err != nil || p.Default {
					t.Fatalf("%+v, %v", p, err)
				}
			}
			if n == 0 { // while the first runs, a report goes out, and its reply gets lost
				wait.Until(t, "a report", func() bool { store.mu.Lock(); defer store.mu.Unlock(); return store.n > 0 })
			}
			cancel()
			require.NoError(t, <-ended)
		}
		used, err := file.UsageOf(t.ctx, []serving.UsageKey{{App: "double-it"}, {ModelID: v.ModelID}})
		if err != nil || len(used) != 2 {
			t.Fatalf("%+v, %v", used, err)
		}
		app, version := used[0], used[1]
		if app.Answers != gateways*queries || app.Cached != gateways*queries/2 || app.Failed != 0 || app.Least == 0 || app.Most < app.Least || app.Since.IsZero() {
			t.Errorf("of the app: %+v", app)
		}
		if version.Answers != gateways*queries/2 || version.Cached != gateways*queries/2 || version.Missed != 0 || version.Micros == 0 {
			t.Errorf("of the version: %+v", version)
		}
	})
}

// TestAGatewayThatStopsBlamesNobody for the questions that it leaves behind.
func TestAGatewayThatStopsBlamesNobody(t *testing.T) {
	bubble(t, func(t *world) {
		release := make(chan struct{})
		defer close(release)
		v := newVersion("m", "1")
		t.replicas.Put(t.replica("m/0", v, func(inputs []serving.Value) []gocontainer.Result {
			<-release
			return make([]gocontainer.Result, len(inputs))
		}))
		cat := catalogOf(v)
		cat.Apps["double-it"].SLO = serving.Duration(50 * time.Millisecond)
		store := &reports{}
		ctx, cancel := context.WithCancel(t.ctx)
		defer cancel()
		g, ended := t.gateway(ctx, nil, gateway.Config{Catalog: fixed{cat}, Usage: store})
		t.ready(g, 1)
		wait.Until(t, "the catalog", func() bool { _, err := g.App("double-it"); return err == nil })
		q := serving.Query{App: "double-it", Received: time.Now(), Input: serving.Input{Type: serving.Doubles, Data: make([]byte, 8)}}
		if p, err := predict(ctx, g, q); err != nil || !p.Default {
			t.Fatalf("%+v, %v", p, err)
		}
		cancel()
		require.NoError(t, <-ended)
		var app, version serving.Usage
		for _, r := range store.all {
			for _, u := range r.Counted {
				if u.Key.App != "" {
					app.Add(u)
				} else {
					version.Add(u)
				}
			}
		}
		if app.Failed != 1 || version.Failed != 0 {
			t.Errorf("of the app %+v, of the version %+v", app, version)
		}
	})
}

// reports keeps what it is told. One goroutine tells it at a time.
type reports struct{ all []serving.UsageReport }

func (r *reports) AddUsage(_ context.Context, report serving.UsageReport) error {
	r.all = append(r.all, report)
	return nil
}
