package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"topsail/serving/bundle"
	"topsail/serving/bundle/archive"
	"topsail/web/api"
)

// DefaultMaxTotal bounds a store, in bytes.
const DefaultMaxTotal = 64 << 30

const (
	ending    = ".zip"
	temporary = "upload-" // what is not checked yet begins with this
	prefix    = "sha256:"
)

// Store is a folder of bundles. Its methods may be called concurrently.
type Store struct {
	MaxTotal int64 // of all bundles together, in bytes; to be set before the store is used

	dir      string
	maxBytes int64
	held     atomic.Int64 // bytes of bundles, and of those that are on their way
	naming   sync.Mutex   // while a bundle gets or loses its name
}

// Open makes the folder if there is none. A bundle has at most maxBytes bytes; 0 leaves
// the format's own bound, 4 GiB. The store then holds DefaultMaxTotal.
func Open(dir string, maxBytes int64) (*Store, error) {
	if maxBytes <= 0 || maxBytes > archive.MaxArchive {
		maxBytes = archive.MaxArchive
	}
	s := &Store{MaxTotal: DefaultMaxTotal, dir: dir, maxBytes: maxBytes}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("cannot make the folder of bundles: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of bundles: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporary) {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return nil, fmt.Errorf("cannot remove an upload that broke off: %w", err)
			}
			continue
		}
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), ending) {
			s.held.Add(info.Size())
		}
	}
	return s, nil
}

// Get describes a bundle. UsedBy is empty: the store does not know the catalog.
func (s *Store) Get(digest string) (api.Artifact, error) {
	path, err := s.path(digest)
	if err != nil {
		return api.Artifact{}, err
	}
	return describe(digest, path)
}

// Open opens a bundle's archive. The caller closes it.
func (s *Store) Open(digest string) (io.ReadSeekCloser, error) {
	path, err := s.path(digest)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, missing(digest, err)
	}
	return f, nil
}

// List names all bundles by their digests, in order. It does not look into them: a file
// may have been damaged since it was stored. Get says so, and to upload the bundle again
// repairs it.
func (s *Store) List() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of bundles: %w", err)
	}
	digests := []string{}
	for _, entry := range entries {
		hex, ok := strings.CutSuffix(entry.Name(), ending)
		if _, err := bundle.ParseDigest(prefix + hex); ok && err == nil {
			digests = append(digests, prefix+hex)
		}
	}
	return digests, nil
}

// Delete removes a bundle. Who is reading it reads on.
func (s *Store) Delete(digest string) error {
	path, err := s.path(digest)
	if err != nil {
		return err
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	info, err := os.Stat(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return missing(digest, err)
	}
	s.held.Add(-info.Size())
	return syncFolder(s.dir)
}

// Path is where a bundle with a digest is, or would be.
func (s *Store) Path(digest string) string {
	path, err := s.path(digest)
	if err != nil {
		return filepath.Join(s.dir, "none") // nothing has such a digest
	}
	return path
}

// path is where a bundle is. What is no digest names no file.
func (s *Store) path(digest string) (string, error) {
	hex, err := bundle.ParseDigest(digest)
	if err != nil {
		return "", fmt.Errorf("%w: %w", api.ErrNoBundle, err)
	}
	return filepath.Join(s.dir, hex+ending), nil
}

func describe(digest, path string) (api.Artifact, error) {
	f, err := os.Open(path)
	if err != nil {
		return api.Artifact{}, missing(digest, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return api.Artifact{}, err
	}
	b, err := bundle.Open(f, info.Size())
	if err != nil {
		return api.Artifact{}, fmt.Errorf("%w: %s was damaged since it was stored, upload it again: %w", api.ErrBundleInvalid, digest, err)
	}
	return api.Artifact{Digest: digest, Size: info.Size(), Created: info.ModTime().UTC(), Manifest: b.ManifestText(), UsedBy: []string{}}, nil
}

func missing(digest string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", api.ErrNoBundle, digest)
	}
	return err
}

// syncFolder makes names in a folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
