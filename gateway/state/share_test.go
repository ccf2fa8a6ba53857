package state

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

const gateways = 8

// told is feedback that comes to one gateway, perhaps not only to that one.
type told struct {
	gateway int
	user    string
	query   int64
}

// drawTold draws feedback from few users, so that gateways meet. The queries are few
// enough for a state to remember all.
func drawTold(t *rapid.T) []told {
	var list []told
	for query := range rapid.IntRange(1, 30).Draw(t, "queries") {
		user := rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "user")
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			list = append(list, told{rapid.IntRange(0, gateways-1).Draw(t, "gateway"), user, int64(query + 1)})
		}
	}
	return list
}

// tell trains all gateways at the same time, each with several callers.
func tell(t testing.TB, all []*gateway, app *App, list []told) {
	var telling sync.WaitGroup
	for _, one := range list {
		telling.Go(func() {
			f := feedback(one.query, 1, oneV1)
			if r := all[one.gateway].Train(context.Background(), app, []Item{{User: one.user, Feedback: f}})[0]; r.Err != nil {
				t.Error(r.Err)
			}
		})
	}
	telling.Wait()
}

// wantLearned checks that each state learned of each of its queries, once.
func wantLearned(t fatal, store Store, app *App, list []told) {
	want := map[string]map[int64]bool{"": {}, "ann": {}, "bob": {}}
	for _, one := range list {
		want[""][one.query], want[one.user][one.query] = true, true
	}
	for user, queries := range want {
		text, _, err := store.LoadState(context.Background(), app.key(user, ""))
		if err != nil {
			t.Fatalf("%v", err)
		}
		s, err := selection.Decode(text, kind)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if n := float64(len(queries)); s.Steps != n || s.Models[0].Asked != n || s.Models[0].Sum != n {
			t.Fatalf("user %q: learned of %v queries, counted %v, want %v", user, s.Steps, s.Models[0].Sum, n)
		}
	}
}

// fatal is what testing.T and rapid.T have in common.
type fatal interface {
	Fatalf(format string, args ...any)
}

// empty gives the users states of their own, so that they do not begin with what the
// app's has learned by then, and can be counted.
func empty(t testing.TB, store Store, app *App) {
	for _, user := range []string{"ann", "bob"} {
		if _, err := store.SwapState(context.Background(), app.key(user, ""), 0, textOf(t, 0, oneV1)); err != nil {
			t.Fatal(err)
		}
	}
}

// 8 gateways that train one state lose nothing, and learn nothing twice.
func TestNoUpdateLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		list, slow := drawTold(rt), time.Duration(rapid.IntRange(0, 3).Draw(rt, "ms"))*time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			m, app := newMemory(), newApp("", oneV1)
			empty(t, m, app)
			m.slow = slow
			var all []*gateway
			for range gateways {
				all = append(all, start(t, m))
			}
			tell(t, all, app, list)
			m.slow = 0
			wantLearned(t, m, app, list)
		})
	})
}

// The same over Redis, each gateway with a client of its own.
func TestNoUpdateLostInRedis(t *testing.T) {
	server := startRedis(t)
	var all []*gateway
	var store *redisstore.Store
	for range gateways {
		store = openStore(t, server.Addr)
		all = append(all, start(t, store))
	}
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		app := NewApp("run"+strconv.Itoa(runs), serving.PolicySpec{Kind: kind}, counting{kind}, defined("", oneV1))
		empty(t, store, app)
		list := drawTold(rt)
		tell(t, all, app, list)
		wantLearned(rt, store, app, list)
	})
}

func startRedis(t *testing.T) *servers.Server {
	t.Helper()
	port, err := servers.FreePort()
	require.NoError(t, err)
	server, err := servers.Redis(t.TempDir(), port)
	require.NoError(t, err)
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Kill)
	return server
}

func openStore(t *testing.T, addr string) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(t.Context(), redisstore.Config{Server: redisclient.Server{Addrs: []string{addr}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// Many users, much feedback: what one caller is told is stored is there for all.
func TestMuchInRedis(t *testing.T) {
	server := startRedis(t)
	app := newApp(serving.ScopeApp, oneV1)
	const each = 500
	var training sync.WaitGroup
	for n := range gateways {
		g := start(t, openStore(t, server.Addr))
		training.Go(func() {
			list := make([]Item, each)
			for i := range list {
				list[i].Feedback = feedback(int64(n*each+i+1), 1, oneV1)
			}
			for _, r := range g.Train(t.Context(), app, list) {
				if r.Err != nil || len(r.Trained) != 1 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	training.Wait()
	s, _, err := start(t, openStore(t, server.Addr)).Explain(t.Context(), app, "", "")
	if err != nil || s.Steps != gateways*each {
		t.Errorf("learned %v times (%v), want %d", s.Steps, err, gateways*each)
	}
}
