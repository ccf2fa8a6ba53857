package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// TestKeepFile publishes more often than the file is to be written.
func TestKeepFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	synctest.Test(t, func(t *testing.T) {
		s := &Store{cfg: Config{Snapshot: path}, log: slog.New(slog.DiscardHandler)}
		s.current.Store(newSnapshot(&serving.Catalog{}, position{}, nil))
		ctx, cancel := context.WithCancel(t.Context())
		kept := make(chan bool)
		go func() { s.keepFile(ctx); close(kept) }()
		change := func() {
			t.Helper()
			now := s.current.Load()
			cat, err := catalog.Apply(now.catalog, putApp(fmt.Sprint("app-", now.catalog.Revision)), 0)
			require.NoError(t, err)
			s.publish(newSnapshot(cat, now.at.next(cat.Revision), nil))
			synctest.Wait()
		}
		want := func(revision uint64) {
			t.Helper()
			if got, err := decodeFile(read(t, path)); err != nil || got.catalog.Revision != revision || got.at.Revision != revision {
				t.Errorf("saved %+v, error %v, want revision %d", got, err, revision)
			}
		}
		change() // supersedes nothing that was worth a file
		time.Sleep(saveEvery)
		synctest.Wait()
		want(1)
		for range 5 {
			change()
		}
		want(1)
		time.Sleep(saveEvery)
		synctest.Wait()
		want(6)
		change()
		want(6)
		cancel()
		<-kept
		want(7)
	})
}
