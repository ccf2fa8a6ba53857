package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// listen sends on what Wakes calls with, until the end of the test.
func listen(t testing.TB, s *Store) <-chan serving.ModelID {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	why, woken := errors.New("heard enough"), make(chan serving.ModelID, 100)
	var listening sync.WaitGroup
	listening.Go(func() {
		if err := s.Wakes(ctx, func(id serving.ModelID) { woken <- id }); !errors.Is(err, why) {
			t.Errorf("got error %v", err)
		}
	})
	t.Cleanup(func() { cancel(why); listening.Wait() })
	return woken
}

// hear waits for one wake.
func hear(t testing.TB, woken <-chan serving.ModelID) serving.ModelID {
	t.Helper()
	select {
	case id := <-woken:
		return id
	case <-time.After(patience):
		t.Fatal("nobody wakes")
		panic("unreachable")
	}
}

func wake(t testing.TB, s *Store, version string) serving.ModelID {
	t.Helper()
	id := serving.ModelID{Model: "m", Version: version}
	if err := s.Wake(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestWakes(t *testing.T) {
	cfg := config(t)
	gateway, scheduler := open(t, cfg), open(t, cfg)
	missed := wake(t, gateway, "missed")
	woken, other := listen(t, scheduler), listen(t, gateway)
	hears := func(want serving.ModelID) {
		t.Helper()
		for _, woken := range []<-chan serving.ModelID{woken, other} {
			if got := hear(t, woken); got != want {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	}
	hears(missed) // while nobody listened
	best := patience
	for round := range 3 { // others use the disk, too
		var slowest time.Duration
		for i := range 100 {
			begun := time.Now()
			hears(wake(t, gateway, fmt.Sprint(round, "-", i)))
			slowest = max(slowest, time.Since(begun))
		}
		t.Log("the slowest of 100 wakes took", slowest)
		best = min(best, slowest)
	}
	if best > 500*time.Millisecond {
		t.Errorf("a wake took %v", best)
	}
}

// TestOldWakes does not repeat what is long over.
func TestOldWakes(t *testing.T) {
	cfg := config(t)
	s := open(t, cfg)
	old := time.Now().Add(-2 * wakeMemory).UnixMilli()
	if err := dataOf(t, cfg).client.Do(t.Context(), "xadd", s.keys.wakes, fmt.Sprintf("%d-0", old), "model", "m", "version", "old").Err(); err != nil {
		t.Fatal(err)
	}
	woken := listen(t, s)
	want := wake(t, s, "new")
	if got := hear(t, woken); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestWakesThroughOutage listens before there is a Redis, and while it is killed.
func TestWakesThroughOutage(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir())
	s := open(t, configOf(server))
	server.Stop()
	woken := listen(t, s)
	if err := s.Wake(t.Context(), serving.ModelID{}); err == nil {
		t.Error("woke nobody without an error")
	}
	for i := range 2 {
		restart(t, server)
		want := wake(t, s, fmt.Sprint(i))
		if got := hear(t, woken); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		server.Kill()
	}
}
