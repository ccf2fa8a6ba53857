//go:build unix

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/containers/intact"
)

// DefaultKeep is how long what is not started is kept.
const DefaultKeep = 30 * 24 * time.Hour

// Sweep removes bundles, environments and SDKs of a work folder that no start has used
// for this long and no process uses now. It returns the folders that are gone. Wheelhouses
// stay: people have put them there.
func Sweep(work string, keep time.Duration) (removed []string, err error) {
	var errs []error
	for _, kind := range []string{"bundles", "environments", "sdk"} {
		paths, err := filepath.Glob(filepath.Join(work, kind, "*"+lockEnding))
		errs = append(errs, err)
		for _, path := range paths {
			gone, err := sweep(path, keep)
			if gone {
				removed = append(removed, strings.TrimSuffix(path, lockEnding))
			}
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

func sweep(lockPath string, keep time.Duration) (gone bool, err error) {
	info, err := os.Stat(lockPath)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // another sweep was first
	}
	if err != nil || time.Since(info.ModTime()) < keep {
		return false, err
	}
	l, err := openLock(lockPath)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	free, err := l.try(syscall.LOCK_EX)
	if !free || err != nil {
		return false, err
	}
	if info, err := os.Stat(lockPath); err != nil || time.Since(info.ModTime()) < keep { // a start came meanwhile
		return false, err
	}
	dir := strings.TrimSuffix(lockPath, lockEnding)
	if err := errors.Join(removeWhole(dir), os.RemoveAll(dir+tempEnding), removed(dir+intact.RecordEnding)); err != nil {
		return false, fmt.Errorf("cannot remove unused files: %w", err)
	}
	return true, os.Remove(lockPath) // last: without it the rest is not found
}

// removeWhole takes the folder's name away first, so that half of it never passes for whole.
func removeWhole(dir string) error {
	old := dir + ".old"
	if err := os.RemoveAll(old); err != nil { // of a sweep that was killed
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(old)
}
