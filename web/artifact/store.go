package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/bundle/archive"
	"github.com/topsail-serving/topsail/web/api"
)

// DefaultMaxTotal bounds a store, in bytes.
const DefaultMaxTotal = 64 << 30

// Bucket is where bundles lie, by their digests. Its errors wrap those of package bundle.
type Bucket interface {
	// Put stores an archive of size bytes that has the digest, whole or not at all, in place
	// of one that is there. The archive's file may be gone afterwards.
	Put(ctx context.Context, digest string, archive *os.File, size int64) error
	// Open opens an archive; the caller closes it. Reading ends with ctx.
	Open(ctx context.Context, digest string) (bundle.Content, bundle.Stored, error)
	List(ctx context.Context) ([]bundle.Stored, error)
	Delete(ctx context.Context, digest string) error
}

// Config is a store's.
type Config struct {
	Bucket   Bucket
	Spool    string // folder for uploads until they are checked; made if there is none
	MaxBytes int64  // of a bundle; 0: the format's own bound, 4 GiB
	MaxTotal int64  // of all bundles together; 0: DefaultMaxTotal
	Key      []byte // signs the addresses of bundles, of all processes that share the bucket; nil: they are not signed
}

// Store is the bundles of management. Its methods may be called concurrently.
type Store struct {
	Config

	uploading atomic.Int64 // bytes of uploads of this process
	full      atomic.Bool  // the last upload found no room

	mu        sync.Mutex // guards the following
	taking    map[string]chan struct{}
	manifests map[string]json.RawMessage
	known     int              // bytes of them
	damaged   map[string]error // what is wrong with bundles that were found to be damaged
}

// maxDamaged bounds the bundles that are known to be damaged.
const maxDamaged = 100

// maxManifests bounds the manifests that are kept in memory, in bytes.
const maxManifests = 32 << 20

// Open makes a store.
func Open(cfg Config) (*Store, error) {
	if cfg.MaxBytes <= 0 || cfg.MaxBytes > archive.MaxArchive {
		cfg.MaxBytes = archive.MaxArchive
	}
	if cfg.MaxTotal <= 0 {
		cfg.MaxTotal = DefaultMaxTotal
	}
	if err := os.MkdirAll(cfg.Spool, 0o750); err != nil {
		return nil, fmt.Errorf("cannot create the folder of uploads: %w", err)
	}
	if _, err := OpenFolder(cfg.Spool); err != nil { // removes what broke off
		return nil, err
	}
	return &Store{Config: cfg, taking: map[string]chan struct{}{}, manifests: map[string]json.RawMessage{}, damaged: map[string]error{}}, nil
}

// Get describes a bundle. UsedBy is empty: the store does not know the catalog.
func (s *Store) Get(ctx context.Context, digest string) (api.Artifact, error) {
	a, err := s.get(ctx, digest)
	s.note(digest, err)
	return a, err
}

func (s *Store) get(ctx context.Context, digest string) (api.Artifact, error) {
	content, stored, err := s.Bucket.Open(ctx, digest)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return api.Artifact{}, fmt.Errorf("%w: %s cannot be read, give the user of this process access to its file: %w", api.ErrBundleInvalid, digest, err)
	case err != nil:
		return api.Artifact{}, known(err)
	}
	defer content.Close()
	manifest := s.manifest(digest)
	if manifest == nil {
		b, err := bundle.Open(&blocks{from: content}, stored.Size)
		if err != nil && ctx.Err() == nil {
			return api.Artifact{}, fmt.Errorf("%w: %s was damaged after it was stored, upload it again (topsail artifact push): %w", api.ErrBundleInvalid, digest, err)
		}
		if err != nil {
			return api.Artifact{}, err
		}
		manifest = b.ManifestText()
		s.remember(digest, manifest)
	}
	return api.Artifact{Digest: digest, Size: stored.Size, Created: stored.Created.UTC(), Manifest: manifest, UsedBy: []string{}}, nil
}

// note remembers whether a bundle is damaged.
func (s *Store) note(digest string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, api.ErrNoBundle):
		delete(s.damaged, digest)
	case errors.Is(err, api.ErrBundleInvalid) && len(s.damaged) < maxDamaged:
		s.damaged[digest] = err
	}
}

// Damaged says which bundles were found to be damaged, by a look at them or an upload of the
// same, and have not been uploaded again or deleted, or nil.
func (s *Store) Damaged() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for _, digest := range slices.Sorted(maps.Keys(s.damaged)) {
		all = append(all, s.damaged[digest])
	}
	return errors.Join(all...)
}

func (s *Store) manifest(digest string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manifests[digest]
}

func (s *Store) remember(digest string, manifest json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known += len(manifest); s.known > maxManifests {
		s.manifests, s.known = map[string]json.RawMessage{}, len(manifest)
	}
	s.manifests[digest] = manifest
}

// Open opens a bundle's archive. The caller closes it.
func (s *Store) Open(ctx context.Context, digest string) (io.ReadSeekCloser, error) {
	content, _, err := s.Bucket.Open(ctx, digest)
	return content, known(err)
}

// List names all bundles by their digests, in order. It does not look into them: a file
// may have been damaged since it was stored. Get says so, and to upload the bundle again
// repairs it.
func (s *Store) List(ctx context.Context) ([]string, error) {
	list, err := s.Bucket.List(ctx)
	digests := make([]string, len(list))
	for i, one := range list {
		digests[i] = one.Digest
	}
	slices.Sort(digests)
	return digests, err
}

// Stored are all bundles, with their sizes.
func (s *Store) Stored(ctx context.Context) ([]bundle.Stored, error) { return s.Bucket.List(ctx) }

// Delete removes a bundle.
func (s *Store) Delete(ctx context.Context, digest string) error {
	s.full.Store(false)
	err := known(s.Bucket.Delete(ctx, digest))
	if err == nil {
		s.note(digest, nil)
	}
	return err
}

// Full says what to do when the last upload found no room, or nil.
func (s *Store) Full() error {
	if s.full.Load() {
		return fmt.Errorf("%w: delete bundles that no version uses, or give it more space", api.ErrBundlesFull)
	}
	return nil
}

// Condition is what is wrong with the store, or nil.
func (s *Store) Condition() error { return errors.Join(s.Full(), s.Damaged()) }

// Used is how many bytes the bundles have, and how many there are.
func (s *Store) Used(ctx context.Context) (bytes int64, n int, err error) {
	list, err := s.Bucket.List(ctx)
	for _, one := range list {
		bytes += one.Size
	}
	return bytes, len(list), err
}

// total is how many bytes the bundles have, but for one.
func (s *Store) total(ctx context.Context, but string) (n int64, err error) {
	list, err := s.Bucket.List(ctx)
	for _, one := range list {
		if one.Digest != but {
			n += one.Size
		}
	}
	return n, err
}

// known makes an error one of package api's.
func known(err error) error {
	switch {
	case errors.Is(err, bundle.ErrNotStored):
		return fmt.Errorf("%w: %w", api.ErrNoBundle, err)
	case errors.Is(err, bundle.ErrNoRoom):
		return fmt.Errorf("%w: %w", api.ErrBundlesFull, err)
	}
	return err
}

// blocks reads in large blocks what is asked for in small pieces, of a server that is unavailable.
type blocks struct {
	from  io.ReaderAt
	at    int64
	block []byte
}

const blockSize = 256 << 10

func (b *blocks) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at < b.at || at >= b.at+int64(len(b.block)) {
			start := at / blockSize * blockSize
			block := make([]byte, blockSize)
			m, err := b.from.ReadAt(block, start)
			if b.at, b.block = start, block[:m]; at >= start+int64(m) {
				if err == nil {
					err = io.ErrNoProgress
				}
				return n, err
			}
		}
		n += copy(p[n:], b.block[at-b.at:])
	}
	return n, nil
}
