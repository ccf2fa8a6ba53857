package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"topsail/serving/bundle"
	"topsail/web/api"
)

// Put stores a bundle that it reads from r, after it has checked all of it. created is
// false where it is there already. Nothing is left of one that is refused, or whose upload
// breaks off. Reading ends with ctx, once r returns.
func (s *Store) Put(ctx context.Context, r io.Reader) (a api.Artifact, created bool, err error) {
	u, err := s.begin()
	if err != nil {
		return api.Artifact{}, false, err
	}
	defer func() { err = errors.Join(err, u.end()) }()
	if err := u.receive(ctx, r); err != nil {
		return api.Artifact{}, false, err
	}
	digest := prefix + hex.EncodeToString(u.hash.Sum(nil))
	path, err := s.path(digest)
	if err != nil {
		return api.Artifact{}, false, err
	}
	if a, err := describe(digest, path); err == nil {
		return a, false, nil
	}
	if err := u.check(ctx); err != nil {
		return api.Artifact{}, false, err
	}
	if created, err = u.keep(digest, path); err != nil {
		return api.Artifact{}, false, err
	}
	a, err = describe(digest, path)
	return a, created, err
}

// upload is a bundle on its way into the store.
type upload struct {
	store *Store
	file  *os.File
	hash  hash.Hash
	size  int64 // what of the store's bound it has taken
}

func (s *Store) begin() (*upload, error) {
	f, err := os.CreateTemp(s.dir, temporary+"*")
	if err != nil {
		return nil, fmt.Errorf("cannot take a bundle: %w", fullDisk(err))
	}
	return &upload{store: s, file: f, hash: sha256.New()}, nil
}

func (u *upload) receive(ctx context.Context, r io.Reader) error {
	n, err := io.Copy(u, patient{ctx, r})
	if err == nil || errors.Is(err, api.ErrBundleTooLarge) || errors.Is(err, api.ErrBundlesFull) {
		return err
	}
	return fmt.Errorf("the upload broke off after %d bytes: %w", n, err)
}

// Write takes room in the store before it takes the disk's.
func (u *upload) Write(b []byte) (int, error) {
	if limit := u.store.maxBytes; u.size+int64(len(b)) > limit {
		return 0, fmt.Errorf("%w: at most %d bytes are taken", api.ErrBundleTooLarge, limit)
	}
	u.size += int64(len(b))
	if held := u.store.held.Add(int64(len(b))); held > u.store.MaxTotal {
		return 0, fmt.Errorf("%w: it holds at most %d bytes; delete bundles that no version uses", api.ErrBundlesFull, u.store.MaxTotal)
	}
	u.hash.Write(b)
	n, err := u.file.Write(b)
	return n, fullDisk(err)
}

// fullDisk is an error of the disk, which may be that there is no room.
func fullDisk(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: delete bundles that no version uses, or give the disk more room: %w", api.ErrBundlesFull, err)
	}
	return err
}

func (u *upload) check(ctx context.Context) error {
	b, err := bundle.Open(u.file, u.size)
	if err == nil {
		err = b.Verify(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", api.ErrBundleInvalid, err)
	}
	return err
}

// keep makes the upload the bundle of the store, durably, unless it has come meanwhile.
func (u *upload) keep(digest, path string) (created bool, err error) {
	if err := u.file.Sync(); err != nil {
		return false, fmt.Errorf("cannot store the bundle: %w", fullDisk(err))
	}
	u.store.naming.Lock()
	defer u.store.naming.Unlock()
	if _, err := describe(digest, path); err == nil {
		return false, nil
	}
	damaged, _ := os.Stat(path)
	if err := os.Rename(u.file.Name(), path); err != nil {
		return false, fmt.Errorf("cannot store the bundle: %w", err)
	}
	u.size = 0 // it is the store's now
	if damaged != nil {
		u.size = damaged.Size() // which the bundle replaces
	}
	return true, syncFolder(filepath.Dir(path))
}

// end closes the file, removes what was not kept, and gives its room back.
func (u *upload) end() error {
	u.store.held.Add(-u.size)
	err := os.Remove(u.file.Name())
	if errors.Is(err, os.ErrNotExist) { // it has its name in the store
		err = nil
	}
	return errors.Join(err, u.file.Close())
}

// patient reads until ctx ends.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	return p.r.Read(b)
}
