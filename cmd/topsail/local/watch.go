package local

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	watchEvery = 500 * time.Millisecond
	watchFiles = 5000 // of one model at most
)

// sourceWatch makes a new generation of a version when a file of its source has changed and then
// stayed as it is for one look. It polls rather than asking the system for events: that works on
// every file system. The data directory, which may stand beside the source, is left out.
type sourceWatch struct {
	version *serving.Version
	roots   []string
	dataDir string
	loaded  uint64 // fingerprint of the source that the replica runs
	told    bool   // of files that are too many
	renew   func(context.Context, serving.Definition) error
	log     *slog.Logger
}

func newSourceWatch(v *serving.Version, dataDir string, renew func(context.Context, serving.Definition) error, log *slog.Logger) *sourceWatch {
	w := &sourceWatch{version: v, roots: v.Container.Watch, dataDir: dataDir, renew: renew, log: log}
	if len(w.roots) == 0 {
		w.roots = []string{v.Container.Dir}
	}
	w.loaded = w.look()
	return w
}

// run looks until ctx ends. What could not be stored is tried again.
func (w *sourceWatch) run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	last := w.loaded
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := w.look()
		if now != w.loaded && now == last {
			if err := w.renew(ctx, w.version.Definition()); err == nil {
				w.loaded = now
				w.log.Info("source changed; restarting the model", "model", w.version.String())
			} else if ctx.Err() == nil {
				w.log.Error("cannot restart the model; retrying", "model", w.version.String(), "err", err)
			}
		}
		last = now
	}
}

// look is the fingerprint of the source as it is. Once it says that it does not see all.
func (w *sourceWatch) look() uint64 {
	sum, whole := fingerprint(w.roots, w.dataDir)
	if !whole && !w.told {
		w.told = true
		w.log.Warn(fmt.Sprintf("the source has more than %d files; changes to the others do not restart the model: name its files or folders in watch", watchFiles), "model", w.version.String())
	}
	return sum
}

// fingerprint sums up names, sizes and times of the files below roots, and says whether
// these are all. Files that cannot be read count as absent.
func fingerprint(roots []string, without string) (sum uint64, whole bool) {
	h := fnv.New64a()
	seen := 0
	whole = true
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return fs.SkipDir
			}
			if d.IsDir() {
				if sameFile(path, without) || path != root && generated(d.Name()) {
					return fs.SkipDir
				}
				return nil
			}
			if info, err := d.Info(); err == nil && !strings.HasSuffix(path, ".pyc") {
				if seen == watchFiles {
					whole = false
					return fs.SkipAll
				}
				seen++
				h.Write([]byte(path))
				h.Write([]byte(info.ModTime().String()))
				h.Write([]byte{byte(info.Size()), byte(info.Size() >> 8), byte(info.Size() >> 16), byte(info.Size() >> 24)})
			}
			return nil
		})
	}
	return h.Sum64(), whole
}

func sameFile(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}

// generated says whether a folder holds what is made from source, or none of it.
func generated(name string) bool {
	switch name {
	case "__pycache__", "node_modules", "venv":
		return true
	}
	return strings.HasPrefix(name, ".")
}
