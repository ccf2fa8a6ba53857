//go:build servers

package api

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/web/change"
)

// mortal keeps claims as a process does that is killed: they are never settled.
type mortal struct{ Replies }

func (mortal) DropReply(context.Context, string) error { return nil }

// TestAgainAfterAKillInACluster claims the name of a request in Redis and is killed: the request
// sent again to another process waits for the claim to end, and is done, without a conflict.
func TestAgainAfterAKillInACluster(t *testing.T) {
	t.Parallel()
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
	store, err := redisstore.Open(t.Context(), redisstore.Config{Addrs: []string{server.Addr}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w := having(t)
	w.api.writer, w.api.Store, w.api.Replies = change.New(store), store, mortal{store}
	other := w.api.one(route{"POST /apps", public, w.api.createApp, true, ""})
	w.handler = w.api.one(route{"POST /apps", public, func(http.ResponseWriter, *http.Request) error { panic("killed") }, true, ""})
	func() {
		defer func() { _ = recover() }()
		w.ask("POST", "/apps", small, "Idempotency-Key", "k")
	}()

	w.handler, w.api.Replies = other, store
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	claims := client.ZRange(t.Context(), "{topsail}:replies", 0, -1).Val()
	if len(claims) != 1 {
		t.Fatalf("claimed: %v", claims)
	}
	const left = time.Second // of its ten
	if err := client.PExpire(t.Context(), claims[0], left).Err(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	answer := w.ask("POST", "/apps", small, "Idempotency-Key", "k")
	if took := time.Since(begun); answer.Code != 201 || took < left/2 || store.Catalog().Revision != 1 {
		t.Errorf("%d %s after %v, at revision %d", answer.Code, answer.Body, took, store.Catalog().Revision)
	}
	again := w.ask("POST", "/apps", small, "Idempotency-Key", "k")
	if again.Code != 201 || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("the answer was not kept: %d %s", again.Code, again.Body)
	}
}
