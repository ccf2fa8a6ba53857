//go:build servers

package redisstore

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// refused makes a change that has to fail soon.
func refused(t testing.TB, s *Store, within time.Duration) {
	t.Helper()
	before, begun := s.Catalog(), time.Now()
	cat, err := s.Apply(t.Context(), putApp("refused"), 0)
	if took := time.Since(begun); err == nil || cat != nil || took > within {
		t.Errorf("got %v and error %v after %v", cat, err, took)
	}
	if s.Catalog() != before {
		t.Error("the catalog has changed")
	}
}

// TestWatchWaitsForTheFirstCatalog starts without Redis and without a file: there is
// nothing to publish, and that there are no apps is not known either.
func TestWatchWaitsForTheFirstCatalog(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir())
	server.Stop()
	s := open(t, configOf(server))
	defer start(t, s)()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan *serving.Catalog, 8)
	go func() { _ = s.Watch(ctx, func(cat *serving.Catalog) { seen <- cat }) }()
	select {
	case cat := <-seen:
		t.Fatalf("published %+v", cat)
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, server.Start(t.Context()))
	select {
	case cat := <-seen:
		if len(cat.Apps) != 0 {
			t.Errorf("an empty Redis holds %+v", cat.Apps)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("what Redis holds, nothing, is not published")
	}
}

// TestAway starts without Redis, with a snapshot file and without one.
func TestAway(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir())
	var log journal.Journal
	cfg := configOf(server)
	cfg.Log = log.Logger()
	cfg.Snapshot = filepath.Join(t.TempDir(), "made", "snapshot")
	s := open(t, cfg)
	stop := start(t, s)
	apply(t, s, putApp("a"))
	want := apply(t, s, putApp("b"))
	stop()
	s.Close()
	server.Stop()

	s = open(t, cfg)
	if got := s.State(); got.Source != FromSnapshot || got.Revision != 2 || !got.LastContact.IsZero() || !strings.Contains(got.Away, "refused") || got.Alarm != "" {
		t.Errorf("with the file: %+v", got)
	}
	awaitCatalog(t, s, want)
	refused(t, s, 2*callTimeout)
	none := cfg
	none.Snapshot = ""
	empty := open(t, none)
	if got := empty.State(); got.Source != FromNothing || got.Revision != 0 || got.Away == "" || got.Alarm != "" {
		t.Errorf("without the file: %+v", got)
	}
	refused(t, empty, 2*callTimeout)
	if _, err := empty.LeaseQueryIDs(t.Context()); err == nil {
		t.Error("leased query ids from nobody")
	}
	start(t, s)
	start(t, empty)

	restart(t, server)
	awaitCatalog(t, empty, want)
	wantWorks(t, s, want)
	for _, s := range []*Store{s, empty} {
		if got := s.State(); got.Source != FromRedis || got.Away != "" || time.Since(got.LastContact) > time.Minute {
			t.Errorf("got %+v", got)
		}
	}
	if away, back := log.Count("redis is unavailable; the last good catalog stays in use"), log.Count("redis is available again"); away != 2 || back != 2 {
		t.Errorf("said %d times that Redis is unavailable and %d times that it is available again, want 2", away, back)
	}
}

// TestKilled kills Redis under those who use it. One that syncs every second would
// forget its last answers, which is a loss like any other.
func TestKilled(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir(), "--appendfsync", "always")
	cfg := configOf(server)
	a, b := follower(t, cfg), follower(t, cfg)
	want := apply(t, a, putApp("a"))
	for range 3 {
		awaitCatalog(t, b, want)
		server.Kill()
		refused(t, a, 2*callTimeout)
		restart(t, server)
		wait.Until(t, "contact", func() bool { return a.State().Away == "" })
		apply(t, a, putApp("killed"))
		want = apply(t, a, catalog.DeleteApp{Name: "killed"})
	}
	awaitCatalog(t, b, want)
	awaitAlarm(t, a, "")
	awaitAlarm(t, b, "")
}

// TestFrozen has a Redis that takes connections and says nothing.
func TestFrozen(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir())
	cfg := configOf(server)
	a, b := follower(t, cfg), follower(t, cfg)
	want := apply(t, a, putApp("a"))
	awaitCatalog(t, b, want)
	server.Freeze()
	defer server.Thaw()
	refused(t, a, 2*callTimeout)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("no patience"))
	defer cancel()
	if _, err := a.Apply(ctx, putApp("b"), 0); err == nil || !strings.Contains(err.Error(), "no patience") {
		t.Errorf("got error %v", err)
	}
	wait.Until(t, "a follower that says so", func() bool { return b.State().Away != "" })
	server.Thaw()
	awaitAlarm(t, b, "")
	wait.Until(t, "contact", func() bool { return b.State().Away == "" })
	want = apply(t, a, putApp("c"))
	awaitCatalog(t, b, want)
}

// TestRunEnds ends Run while it waits for Redis.
func TestRunEnds(t *testing.T) {
	s := open(t, config(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	why, ended := errors.New("enough"), make(chan error)
	go func() { ended <- s.Run(ctx) }()
	apply(t, s, putApp("a"))
	begun := time.Now()
	cancel(why)
	if err := <-ended; !errors.Is(err, why) || time.Since(begun) > blockFor*9/10 {
		t.Errorf("got error %v after %v", err, time.Since(begun))
	}
	if s, err := Open(ctx, s.cfg); !errors.Is(err, why) || s != nil {
		t.Errorf("opened with error %v", err)
	}
}

// TestPassword changes the password while a process runs, and closes its connections.
func TestPassword(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir(), "--requirepass", "first")
	var mu sync.Mutex
	password := "wrong"
	set := func(p string) { mu.Lock(); password = p; mu.Unlock() }
	cfg := configOf(server)
	cfg.Password = func() (string, error) { mu.Lock(); defer mu.Unlock(); return password, nil }
	s := follower(t, cfg)
	if got := s.State(); got.Source != FromNothing || !strings.Contains(got.Away, "WRONGPASS") {
		t.Errorf("got %+v", got)
	}
	set("first")
	wait.Until(t, "contact", func() bool { return s.State().Away == "" })
	apply(t, s, putApp("a"))

	operator := client(t, server)
	operator.Options().Password = "first"
	for _, command := range [][]any{{"config", "set", "requirepass", "second"}, {"client", "kill", "type", "normal", "skipme", "yes"}} {
		require.NoError(t, operator.Do(t.Context(), command...).Err())
	}
	refused(t, s, 2*callTimeout)
	set("second")
	wait.Until(t, "contact", func() bool { return s.State().Away == "" })
	apply(t, s, putApp("b"))
	cfg.Password = func() (string, error) { return "", errors.New("the file is gone") }
	if got := open(t, cfg).State(); !strings.Contains(got.Away, "the file is gone") {
		t.Errorf("got %+v", got)
	}
}
