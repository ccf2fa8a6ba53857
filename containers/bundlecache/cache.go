//go:build unix

// Package bundlecache keeps unpacked bundles for the containers of hosts, which load models
// from them: as many as fit, those that were fetched last.
package bundlecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/containers/intact"
	"github.com/topsail-serving/topsail/containers/launch"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving/bundle"
)

// inUse is for how long a bundle that was fetched is surely there: a container loads it
// meanwhile.
const inUse = 2 * time.Minute

// soon is how soon a bundle is fetched again whose load has failed, at the latest.
const soon = 10 * time.Minute

// Source says where the bundles are that have no URL of their own: paths, or URLs of
// which any will do. Client asks them.
type Source struct {
	Of     func(ctx context.Context, digest string) ([]string, error)
	Client *http.Client
}

// Cache is a folder of unpacked bundles, of which one process takes care. Processes of
// models read in it.
type Cache struct {
	dir    string
	most   int64
	source Source
	log    io.Writer

	mu    sync.Mutex // guards the following
	kept  map[string]*volume
	total int64 // bytes of those that are whole
}

// volume is one bundle.
type volume struct {
	whole chan struct{} // closed when it is there, or could not be had
	err   error
	bytes int64
	used  time.Time // guarded by the cache

	repairing chan struct{} // takes a checker
}

func newVolume() *volume {
	return &volume{whole: make(chan struct{}), repairing: make(chan struct{}, 1)}
}

// Open makes the folder of a cache and takes over what is in it. most is how many bytes
// of files it keeps, apart from those in use; log gets lines for people.
func Open(dir string, most int64, source Source, log io.Writer) (*Cache, error) {
	dir, err := filepath.Abs(dir) // the container has another working directory
	if err != nil {
		return nil, fmt.Errorf("cannot cache bundles: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot cache bundles: %w", err)
	}
	s := &Cache{dir: dir, most: most, source: source, log: log, kept: map[string]*volume{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot cache bundles: %w", err)
	}
	for _, e := range entries {
		if digits, ok := strings.CutSuffix(e.Name(), intact.RecordEnding); ok && isFolder(filepath.Join(dir, digits)) {
			continue
		}
		if err := s.adopt(e.Name()); err != nil {
			return nil, fmt.Errorf("cannot cache bundles: %w", err)
		}
	}
	return s, nil
}

// adopt takes over a bundle of an earlier process, or removes what it left behind.
func (s *Cache) adopt(name string) error {
	if _, err := bundle.ParseDigest("sha256:" + name); err != nil {
		return os.RemoveAll(filepath.Join(s.dir, name))
	}
	bytes, err := sizeOf(filepath.Join(s.dir, name))
	if err != nil {
		return s.remove(name)
	}
	v := newVolume()
	v.bytes = bytes
	close(v.whole)
	s.kept["sha256:"+name] = v
	s.total += bytes
	return nil
}

// remove removes a folder of the cache with its record.
func (s *Cache) remove(name string) error {
	dir := filepath.Join(s.dir, name)
	return errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+intact.RecordEnding))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// sizeOf is what the files of an unpacked bundle have, as its manifest says.
func sizeOf(dir string) (bytes int64, err error) {
	text, err := os.ReadFile(filepath.Join(dir, bundle.ManifestName))
	if err != nil {
		return 0, err
	}
	m, err := bundle.ParseManifest(text)
	if err != nil {
		return 0, err
	}
	for _, f := range m.Files {
		bytes += f.Size
	}
	return bytes, nil
}

// Dir is the folder that the folders of Fetch are in, as an absolute path.
func (s *Cache) Dir() string { return s.dir }

// Fetch has the bundle of a version in the cache, and says in which folder of it, and how many
// bytes its files have. Concurrent calls for one bundle share one fetch, which runs with the
// context of the first.
func (s *Cache) Fetch(ctx context.Context, want rpc.Load) (folder string, bytes int64, err error) {
	hex, err := bundle.ParseDigest(want.Bundle)
	if err != nil {
		return "", 0, err
	}
	s.mu.Lock()
	v := s.kept[want.Bundle]
	first := v == nil
	if first {
		v = newVolume()
		s.kept[want.Bundle] = v
	}
	again := time.Since(v.used) < soon // its load may have failed
	v.used = time.Now()
	s.mu.Unlock()
	if first {
		s.fill(ctx, v, hex, want)
	}
	select {
	case <-v.whole:
	case <-ctx.Done():
		return "", 0, context.Cause(ctx)
	}
	if !first && v.err == nil {
		if err := s.repair(ctx, v, hex, want, again); err != nil {
			return "", 0, err
		}
	}
	return hex, v.bytes, v.err
}

// repair restores the files of a bundle that have changed since it was unpacked.
func (s *Cache) repair(ctx context.Context, v *volume, hex string, want rpc.Load, again bool) error {
	select {
	case v.repairing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-v.repairing }()
	dir := filepath.Join(s.dir, hex)
	change, known, err := intact.Check(ctx, dir, again)
	if err != nil || known && len(change.Files) == 0 {
		return err
	}
	repaired, err := intact.Repair(ctx, dir, func(temp string) error { return s.unpack(ctx, temp, want) })
	switch {
	case err != nil:
		return fmt.Errorf("%s in %s changed after it was unpacked, and cannot be restored: %w", append(change.Files, bundle.ManifestName)[0], dir, err)
	case len(repaired) > 0:
		fmt.Fprintf(s.log, "bundle %s: %s changed after it was unpacked, and was restored\n", hex[:12], strings.Join(repaired, ", "))
	}
	return nil
}

// fill fetches a bundle, and makes room for it.
func (s *Cache) fill(ctx context.Context, v *volume, hex string, want rpc.Load) {
	defer close(v.whole)
	dir := filepath.Join(s.dir, hex)
	if v.err = intact.Make(ctx, dir, func(temp string) error { return s.unpack(ctx, temp, want) }); v.err == nil {
		v.bytes, v.err = sizeOf(dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.err != nil {
		delete(s.kept, want.Bundle)
		return
	}
	s.total += v.bytes
	s.clear()
}

// unpack fetches a bundle and unpacks it into a folder that does not exist.
func (s *Cache) unpack(ctx context.Context, dir string, want rpc.Load) (err error) {
	from := []string{want.URL}
	if want.URL == "" {
		if from, err = s.source.Of(ctx, want.Bundle); err != nil {
			return err
		}
	}
	at := from[0]
	if strings.Contains(at, "://") {
		if at, err = launch.Download(ctx, s.source.Client, from, want.Bundle, s.dir, s.log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(at)) }()
	}
	return unpack(ctx, at, want.Bundle, dir)
}

// unpack unpacks an archive that must have a digest.
func unpack(ctx context.Context, path, digest, dir string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read the bundle: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	got, err := bundle.Digest(f)
	if err != nil {
		return fmt.Errorf("cannot read the bundle: %w", err)
	}
	if got != digest {
		return fmt.Errorf("the bundle has the digest %s instead of %s: it was damaged; upload it again", got, digest)
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot read the bundle: %w", err)
	}
	b, err := bundle.Open(f, info.Size())
	if err != nil {
		return err
	}
	return b.Unpack(ctx, dir)
}

// clear removes what was fetched longest ago until the rest fits, except what is in use.
// s.mu is held.
func (s *Cache) clear() {
	for s.total > s.most {
		oldest := ""
		for digest, v := range s.kept {
			if s.idle(v) && (oldest == "" || v.used.Before(s.kept[oldest].used)) {
				oldest = digest
			}
		}
		if oldest == "" {
			return
		}
		s.total -= s.kept[oldest].bytes
		delete(s.kept, oldest)
		if err := s.remove(strings.TrimPrefix(oldest, "sha256:")); err != nil {
			fmt.Fprintln(s.log, "cannot remove an unused bundle:", err) // it takes its place until the next start
		}
	}
}

// idle says whether a bundle is whole and not being loaded. s.mu is held.
func (s *Cache) idle(v *volume) bool {
	select {
	case <-v.whole:
		return time.Since(v.used) > inUse
	default:
		return false
	}
}
