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

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/web/api"
)

// Put stores a bundle that it reads from r, after it has checked all of it. created is
// false where it is there already, undamaged. Nothing is left of one that is refused, or whose upload
// breaks off. Reading ends with ctx, once r returns.
func (s *Store) Put(ctx context.Context, r io.Reader) (a api.Artifact, created bool, err error) {
	u, err := s.begin(ctx)
	if err != nil {
		return api.Artifact{}, false, err
	}
	defer func() { err = errors.Join(err, u.end()) }()
	if err := u.receive(ctx, r); err != nil {
		return api.Artifact{}, false, err
	}
	digest := prefix + hex.EncodeToString(u.hash.Sum(nil))
	done, err := s.take(ctx, digest)
	if err != nil {
		return api.Artifact{}, false, err
	}
	defer done()
	if a, err := s.Get(ctx, digest); err == nil && s.intact(ctx, digest) {
		return a, false, nil
	}
	if err := u.check(ctx); err != nil {
		return api.Artifact{}, false, err
	}
	if err := u.keep(ctx, digest); err != nil {
		return api.Artifact{}, false, err
	}
	a, err = s.Get(ctx, digest)
	return a, err == nil, err
}

// intact says whether what is stored under a digest has it still.
func (s *Store) intact(ctx context.Context, digest string) bool {
	content, _, err := s.Bucket.Open(ctx, digest)
	if err != nil {
		return false
	}
	defer content.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, patient{ctx, content})
	return err == nil && prefix+hex.EncodeToString(sum.Sum(nil)) == digest
}

// take waits until no other upload of this process stores a bundle with this digest.
func (s *Store) take(ctx context.Context, digest string) (done func(), err error) {
	for {
		s.mu.Lock()
		other := s.taking[digest]
		if other == nil {
			mine := make(chan struct{})
			s.taking[digest] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.taking, digest)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// upload is a bundle on its way into the store.
type upload struct {
	store  *Store
	file   *os.File
	hash   hash.Hash
	size   int64
	others int64 // bytes of the bundles that were there when it began
}

func (s *Store) begin(ctx context.Context) (*upload, error) {
	others, err := s.total(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("cannot accept a bundle: %w", err)
	}
	f, err := os.CreateTemp(s.Spool, temporary+"*")
	if err != nil {
		return nil, fmt.Errorf("cannot accept a bundle: %w", s.noRoom(fullDisk(err)))
	}
	return &upload{store: s, file: f, hash: sha256.New(), others: others}, nil
}

func (u *upload) receive(ctx context.Context, r io.Reader) error {
	n, err := io.Copy(u, patient{ctx, r})
	if err == nil || errors.Is(err, api.ErrBundleTooLarge) || errors.Is(err, api.ErrBundlesFull) {
		return err
	}
	return fmt.Errorf("the upload was interrupted after %d bytes: %w", n, err)
}

// Write takes room in the store before it takes the disk's.
func (u *upload) Write(b []byte) (int, error) {
	if limit := u.store.MaxBytes; u.size+int64(len(b)) > limit {
		return 0, fmt.Errorf("%w: at most %d bytes are accepted", api.ErrBundleTooLarge, limit)
	}
	u.size += int64(len(b))
	if coming := u.store.uploading.Add(int64(len(b))); u.others+coming > u.store.MaxTotal {
		return 0, u.store.overflow()
	}
	u.hash.Write(b)
	n, err := u.file.Write(b)
	return n, u.store.noRoom(fullDisk(err))
}

func (s *Store) overflow() error {
	return s.noRoom(fmt.Errorf("%w: all bundles together may have %d bytes; delete bundles that no version uses", bundle.ErrNoRoom, s.MaxTotal))
}

// noRoom notes that there is no room, where that is the error.
func (s *Store) noRoom(err error) error {
	if errors.Is(err, bundle.ErrNoRoom) {
		s.full.Store(true)
	}
	return known(err)
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

// keep makes the upload the bundle of the store. Others may have come meanwhile, here or in
// another process.
func (u *upload) keep(ctx context.Context, digest string) error {
	others, err := u.store.total(ctx, digest)
	if err != nil {
		return fmt.Errorf("cannot store the bundle: %w", err)
	}
	if others+u.size > u.store.MaxTotal {
		return u.store.overflow()
	}
	if err := u.store.Bucket.Put(ctx, digest, u.file, u.size); err != nil {
		return fmt.Errorf("cannot store the bundle: %w", u.store.noRoom(err))
	}
	u.store.full.Store(false)
	return nil
}

// end closes the file, removes it, and gives its room back.
func (u *upload) end() error {
	u.store.uploading.Add(-u.size)
	err := os.Remove(u.file.Name())
	if errors.Is(err, os.ErrNotExist) { // it has its name in the bucket
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
