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

// openFile opens the file for writing, after a look at its pages.
func openFile(path string) (*bbolt.DB, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Size() > 0:
		if err := checkFile(path); err != nil {
			return nil, err
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait})
}

// checkFile checks the pages under a shared lock. To open the file for reading,
// bbolt looks at nothing but the two meta pages, which have checksums.
func checkFile(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return err
	}
	defer db.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return checkPages(data, db.Info().PageSize)
}

// explain says what to do about an error of opening or reading the file.
func explain(path string, err error) error {
	_, system := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("data directory %s is in use by another topsail; stop it or choose another --data-dir", filepath.Dir(path))
	case errors.Is(err, errNewer):
		return fmt.Errorf("%s is %w; use that release or choose another --data-dir", path, err)
	case system:
		return fmt.Errorf("open the data directory: %w", err)
	}
	return fmt.Errorf("%s is damaged (%w); move it aside and start again: "+
		"what the configuration file defines comes back, what was made through the API has to be made again", path, err)
}

// syncDir makes a file that was created in dir last through a power failure.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
