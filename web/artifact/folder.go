package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/internal/durable"
	"github.com/topsail-serving/topsail/serving/bundle"
)

const (
	ending    = ".zip"
	temporary = "upload-" // what is not checked yet begins with this
	prefix    = "sha256:"

	// abandoned is the age at which an upload has surely ended: another process of those that
	// share the folder may be at it until then. It is above what an upload may take.
	abandoned = 12 * time.Hour
)

// Folder is a bucket in a folder, which may be shared by machines: a file for each bundle.
type Folder struct{ dir string }

// FolderAt is a folder as it is: nothing is made or removed.
func FolderAt(dir string) *Folder { return &Folder{dir} }

// OpenFolder makes the folder if there is none, and removes uploads that broke off.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("cannot create the folder of bundles: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of bundles: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !strings.HasPrefix(entry.Name(), temporary) || time.Since(info.ModTime()) < abandoned {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot remove an interrupted upload: %w", err)
		}
	}
	return FolderAt(dir), nil
}

// Put implements Bucket. An archive in the folder itself gets the name of its bundle.
func (f *Folder) Put(_ context.Context, digest string, archive *os.File, _ int64) error {
	path, err := f.path(digest)
	if err != nil {
		return err
	}
	if filepath.Dir(archive.Name()) != f.dir {
		if archive, err = f.copyOf(archive); err != nil {
			return err
		}
		defer os.Remove(archive.Name()) // unless it has got its name
		defer archive.Close()
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() { // damage, which a rename does not replace
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return fullDisk(durable.Rename(archive.Name(), path))
}

func (f *Folder) copyOf(archive *os.File) (*os.File, error) {
	temp, err := os.CreateTemp(f.dir, temporary+"*")
	if err != nil {
		return nil, fullDisk(err)
	}
	_, err = archive.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(temp, archive)
	}
	if err != nil {
		return nil, errors.Join(fullDisk(err), temp.Close(), os.Remove(temp.Name()))
	}
	return temp, nil
}

// Open implements Bucket.
func (f *Folder) Open(_ context.Context, digest string) (bundle.Content, bundle.Stored, error) {
	path, err := f.path(digest)
	if err != nil {
		return nil, bundle.Stored{}, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, bundle.Stored{}, missing(digest, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, bundle.Stored{}, errors.Join(err, file.Close())
	}
	return file, bundle.Stored{Digest: digest, Size: info.Size(), Created: info.ModTime()}, nil
}

// List implements Bucket.
func (f *Folder) List(context.Context) ([]bundle.Stored, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of bundles: %w", err)
	}
	var list []bundle.Stored
	for _, entry := range entries {
		hex, ok := strings.CutSuffix(entry.Name(), ending)
		if _, err := bundle.ParseDigest(prefix + hex); !ok || err != nil {
			continue
		}
		if info, err := entry.Info(); err == nil { // else it has just gone
			list = append(list, bundle.Stored{Digest: prefix + hex, Size: info.Size(), Created: info.ModTime()})
		}
	}
	return list, nil
}

// Delete implements Bucket. Open readers of the bundle can read on.
func (f *Folder) Delete(_ context.Context, digest string) error {
	path, err := f.path(digest)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return missing(digest, err)
	}
	return durable.Sync(f.dir)
}

// Path is where a bundle with a digest is, or would be.
func (f *Folder) Path(digest string) string {
	path, err := f.path(digest)
	if err != nil {
		return filepath.Join(f.dir, "none") // nothing has such a digest
	}
	return path
}

// path is where a bundle is. A name that is not a digest has no file.
func (f *Folder) path(digest string) (string, error) {
	hex, err := bundle.ParseDigest(digest)
	if err != nil {
		return "", fmt.Errorf("%w: %w", bundle.ErrNotStored, err)
	}
	return filepath.Join(f.dir, hex+ending), nil
}

func missing(digest string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", bundle.ErrNotStored, digest)
	}
	return err
}

// fullDisk is an error of the disk, which may be that there is no room.
func fullDisk(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: delete bundles that no version uses, or free disk space: %w", bundle.ErrNoRoom, err)
	}
	return err
}
