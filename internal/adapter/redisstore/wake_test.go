package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
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
	require.NoError(t, s.Wake(t.Context(), id))
	return id
}

// TestOldWakes does not repeat what is long over.
func TestOldWakes(t *testing.T) {
	cfg := config(t)
	s := open(t, cfg)
	old := time.Now().Add(-2 * wakeMemory).UnixMilli()
	require.NoError(t, dataOf(t, cfg).client.Do(t.Context(), "xadd", s.keys.wakes, fmt.Sprintf("%d-0", old), "model", "m", "version", "old").Err())
	woken := listen(t, s)
	want := wake(t, s, "new")
	if got := hear(t, woken); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
