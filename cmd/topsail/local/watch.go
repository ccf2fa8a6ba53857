package local

import (
	"context"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"topsail/serving"
)

const (
	watchEvery = 500 * time.Millisecond
	watchFiles = 5000 // of one model at most
)

// sourceWatch makes a new generation of a version when a file of its source has changed
// and then stayed as it is for one look. It looks again and again rather than asking the
// system for events: that works on every file system. The data directory, which may
// stand beside the source, is left out.
type sourceWatch struct {
	version *serving.Version
	roots   []string
	dataDir string
	loaded  uint64 // fingerprint of the source that the replica runs
	renew   func(context.Context, serving.Definition) error
	log     *slog.Logger
}

func newSourceWatch(v *serving.Version, dataDir string, renew func(context.Context, serving.Definition) error, log *slog.Logger) *sourceWatch {
	w := &sourceWatch{version: v, roots: v.Container.Watch, dataDir: dataDir, renew: renew, log: log}
	if len(w.roots) == 0 {
		w.roots = []string{v.Container.Dir}
	}
	w.loaded = fingerprint(w.roots, dataDir)
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
		now := fingerprint(w.roots, w.dataDir)
		if now != w.loaded && now == last {
			if err := w.renew(ctx, w.version.Definition()); err == nil {
				w.loaded = now
				w.log.Info("source changed; restarting the model", "model", w.version.String())
			} else if ctx.Err() == nil {
				w.log.Error("cannot restart the model; trying again", "model", w.version.String(), "err", err)
			}
		}
		last = now
	}
}

// fingerprint sums up names, sizes and times of the files below roots. Files that
// cannot be read count as absent.
func fingerprint(roots []string, without string) uint64 {
	h := fnv.New64a()
	seen := 0
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || seen >= watchFiles {
				return fs.SkipDir
			}
			if d.IsDir() {
				if sameFile(path, without) || path != root && generated(d.Name()) {
					return fs.SkipDir
				}
				return nil
			}
			if info, err := d.Info(); err == nil && !strings.HasSuffix(path, ".pyc") {
				seen++
				h.Write([]byte(path))
				h.Write([]byte(info.ModTime().String()))
				h.Write([]byte{byte(info.Size()), byte(info.Size() >> 8), byte(info.Size() >> 16), byte(info.Size() >> 24)})
			}
			return nil
		})
	}
	return h.Sum64()
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
