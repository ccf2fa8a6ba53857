package local

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// watched watches a folder for some looks, and returns what it logged and how often the
// model was restarted. Between the looks the folder is changed.
func watched(t *testing.T, dir string, change func()) (log string, renewed int) {
	t.Helper()
	var written bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		v := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}, Container: serving.Container{Dir: dir}}
		renew := func(context.Context, serving.Definition) error {
			renewed++
			return nil
		}
		w := newSourceWatch(v, filepath.Join(dir, "data"), renew, slog.New(slog.NewTextHandler(&written, nil)))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.run(ctx)
		}()
		time.Sleep(4 * watchEvery)
		change()
		time.Sleep(4 * watchEvery)
		cancel()
		<-ended
	})
	return written.String(), renewed
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// TestWatchSaysOnceWhatItMisses: changes of files beyond the bound restart nothing, and the
// log says so, once.
func TestWatchSaysOnceWhatItMisses(t *testing.T) {
	dir := t.TempDir()
	for i := range watchFiles {
		write(t, filepath.Join(dir, fmt.Sprintf("a%04d", i)), "")
	}
	log, renewed := watched(t, dir, func() { write(t, filepath.Join(dir, "a0000"), "changed") })
	if renewed != 1 || strings.Contains(log, "level=WARN") {
		t.Errorf("with %d files the model was restarted %d times, and it says\n%s", watchFiles, renewed, log)
	}
	last := filepath.Join(dir, "b")
	write(t, last, "")
	log, renewed = watched(t, dir, func() { write(t, last, "changed") })
	if renewed != 0 || strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, fmt.Sprintf("more than %d files", watchFiles)) || !strings.Contains(log, "model=m:1") {
		t.Errorf("with a file more the model was restarted %d times, and it says\n%s", renewed, log)
	}
}
