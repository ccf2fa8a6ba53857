//go:build unix && system

package launch

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/test/journal"
)

// Replicas that start at one time all get a folder that one of them makes, and share it while
// their models run.
func TestStartsAtOneTimeShareWhatOneMakes(t *testing.T) {
	for range 200 {
		dir := filepath.Join(t.TempDir(), "bundle")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		made := 0
		s := slot{
			what: "bundle", dir: dir, ready: func() bool { return isFolder(dir) },
			make: func(context.Context, *lock) error { made++; return os.Mkdir(dir, 0o755) },
		}
		var starts, running sync.WaitGroup
		starts.Add(3)
		for range 3 {
			running.Go(func() {
				var held locks
				_, err := s.hold(ctx, &held, &Options{Log: &journal.Journal{}})
				starts.Done()
				if err != nil {
					t.Error(err)
				}
				starts.Wait() // nobody gives the lock back before all have it
				if err := held.close(); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		if made != 1 || t.Failed() {
			t.Fatalf("it was made %d times", made)
		}
	}
}
