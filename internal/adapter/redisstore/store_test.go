package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
)

var prefixes atomic.Int64

// config is for the shared Redis, under a new prefix.
func config(t testing.TB) Config {
	t.Helper()
	return configOf(shared.start(t))
}

func configOf(server *servers.Server) Config {
	return Config{Server: redisclient.Server{Addrs: []string{server.Addr}}, Prefix: fmt.Sprintf("test-%d", prefixes.Add(1)), Log: slog.New(slog.DiscardHandler)}
}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// start runs a Store until stop, or the end of the test.
func start(t testing.TB, s *Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

// follower is a Store that runs.
func follower(t testing.TB, cfg Config) *Store {
	t.Helper()
	s := open(t, cfg)
	start(t, s)
	return s
}

func apply(t testing.TB, s *Store, change catalog.Change) *serving.Catalog {
	t.Helper()
	cat, err := s.Apply(t.Context(), change, 0)
	if err != nil {
		t.Fatalf("%#v: %v", change, err)
	}
	return cat
}

func putApp(name string) catalog.PutApp { return catalog.PutApp{App: app(name)} }

func app(name string, models ...string) serving.App {
	return serving.App{Name: name, InputType: serving.Doubles, SLO: serving.Duration(time.Second), Models: models}
}

func version(model, name string) serving.Version {
	return serving.Version{ModelID: serving.ModelID{Model: model, Version: name}, InputType: serving.Doubles, Replicas: 1}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// awaitCatalog waits until the Store has want.
func awaitCatalog(t testing.TB, s *Store, want *serving.Catalog) {
	t.Helper()
	text := encode(t, want)
	wait.Until(t, "catalog "+text, func() bool { return encode(t, s.Catalog()) == text })
}

// awaitAlarm waits for an alarm with the words, or for none to be left.
func awaitAlarm(t testing.TB, s *Store, words string) {
	t.Helper()
	wait.Until(t, "alarm with "+words, func() bool {
		alarm := s.State().Alarm
		return strings.Contains(alarm, words) && (alarm == "") == (words == "")
	})
}

func TestCatalogContract(t *testing.T) {
	contract.Catalog(t, func(t *testing.T) (contract.CatalogStore, func() contract.CatalogStore) {
		cfg := config(t)
		store := open(t, cfg)
		stop := start(t, store)
		return store, func() contract.CatalogStore {
			stop()
			store.Close()
			store = open(t, cfg)
			stop = start(t, store)
			return store
		}
	})
}

// TestNewest has a Store that does not run decide on what another one wrote.
func TestNewest(t *testing.T) {
	cfg := config(t)
	a, b := open(t, cfg), open(t, cfg)
	apply(t, a, putApp("a"))
	if cat := apply(t, b, catalog.DeleteApp{Name: "a"}); cat.Revision != 2 || len(cat.Apps) != 0 {
		t.Errorf("got %+v", cat)
	}
	if cat := apply(t, a, catalog.PutApp{App: app("a"), Create: true}); cat.Revision != 3 {
		t.Errorf("got %+v", cat)
	}
	if _, err := b.Apply(t.Context(), putApp("a"), 3); err != nil || b.Catalog().Revision != 3 {
		t.Errorf("revision %d, error %v", b.Catalog().Revision, err)
	}
	want := State{Source: FromRedis, Epoch: a.State().Epoch, Revision: 3, LastContact: b.State().LastContact}
	if got := b.State(); got != want || want.Epoch == "" || want.LastContact.IsZero() {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestConfig(t *testing.T) {
	at := redisclient.Server{Addrs: []string{"a:1"}}
	for words, cfg := range map[string]Config{
		"address":         {},
		"braces":          {Server: at, Prefix: "{a}"},
		"not both":        {Server: redisclient.Server{Addrs: at.Addrs, Cluster: true, Master: "m"}},
		"not a directory": {Server: at, Snapshot: "/dev/null/snapshot"},
	} {
		cfg.Log = slog.New(slog.DiscardHandler)
		if s, err := Open(t.Context(), cfg); err == nil || s != nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got error %v, want one with %q", err, words)
		}
	}
}
