//go:build system

package e2e

import (
	"context"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/servers"
)

// disk is memory in a file.
type disk struct {
	memory
	close func()
}

func onDisk(t testing.TB, dir string) disk {
	t.Helper()
	store, err := filestore.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return disk{memory{store, inprocess.NewRecords()}, func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}}
}

// startRedis starts one of the test's own.
func startRedis(t testing.TB) *servers.Server {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	server, err := servers.Redis(t.TempDir(), port)
	if err == nil {
		err = server.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}

// inRedis is memory that gateways share.
func inRedis(t testing.TB, server *servers.Server) memory {
	t.Helper()
	store, err := redisstore.Open(t.Context(), redisstore.Config{Addrs: []string{server.Addr}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return memory{store, store}
}

// keys are those that Redis has with a word in them.
func keys(t testing.TB, server *servers.Server, word string) []string {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	list, err := client.Keys(t.Context(), "*"+word+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// stored is the text of the state of a user, or of the app, as it is kept; empty where
// there is none.
func (m memory) stored(t testing.TB, a *serving.App, user string) (text string, revision uint64) {
	t.Helper()
	b, revision, err := m.states.LoadState(t.Context(), stateKey(a, user))
	if err != nil {
		t.Fatal(err)
	}
	return string(b), revision
}

func stateKey(a *serving.App, user string) serving.StateKey {
	return serving.StateKey{App: a.Name, Kind: a.Policy.KindName(), User: user}
}

// explain says what a policy has learned, as somebody sees it who only has the store.
func (e *edge) explain(in memory, app, user string) (*selection.State, []selection.Standing) {
	e.t.Helper()
	states := state.New(in.states, slog.New(slog.DiscardHandler), obs.NewRegistry())
	s, standings, err := states.Explain(context.Background(), e.Learning(app), user, "")
	if err != nil {
		e.t.Fatal(err)
	}
	return s, standings
}
