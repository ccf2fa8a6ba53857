package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockWait is how long Open waits, at most twice, for a process that is on its
// way out.
const lockWait = 450 * time.Millisecond

// tornMeta is what the loss of one of bbolt's two meta pages may mean. Each write takes the
// place of the older one, so the broken one may have been the newer.
const tornMeta = "one of its two first pages is broken: the last change or feedback that was acknowledged may be undone " +
	"(a key that was revoked may be valid again); compare with the audit log and what you know"

// openFile opens the file for writing, after a look at its pages.
func openFile(path string) (db *bbolt.DB, torn bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Size() > 0:
		if torn, err = checkFile(path); err != nil {
			return nil, false, err
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait})
	return db, torn, err
}

// ErrInUse says that another process has the file open.
var ErrInUse = bolterrors.ErrTimeout

func openToRead(path string) (*bbolt.DB, error) {
	return bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
}

// checkFile checks the pages under a shared lock. To open the file for reading,
// bbolt looks at nothing but the two meta pages, which have checksums.
func checkFile(path string) (torn bool, err error) {
	db, err := openToRead(path)
	if err != nil {
		return false, err
	}
	defer db.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	size := db.Info().PageSize
	return len(metas(data, size)) < 2, checkPages(data, size)
}

// explain says what to do about an error of opening or reading the file.
func explain(path string, err error) error {
	_, system := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, ErrInUse):
		return fmt.Errorf("data directory %s is in use by another topsail; stop it or choose another --data-dir", filepath.Dir(path))
	case errors.Is(err, errOtherFormat):
		return fmt.Errorf("%s is %w; use that release or choose another --data-dir", path, err)
	case system:
		return fmt.Errorf("open the data directory: %w", err)
	}
	return fmt.Errorf("%s is damaged (%w); %s", path, err, wayOut(path))
}
