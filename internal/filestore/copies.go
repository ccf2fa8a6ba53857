package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// The folder copies, beside the file, has the last good copies of it: one of each start and
// each day, within bounds; the newest always.
const (
	copiesFolder = "copies"
	copyEvery    = 24 * time.Hour
	keptCopies   = 7
	keptBytes    = 1 << 30
)

// copyTime is in the names of copies, which sort by it.
const copyTime = "20060102T150405.000Z"

func (s *Store) copyName(why string) string {
	return fmt.Sprintf("topsail-%s-%s.db", time.Now().UTC().Format(copyTime), why)
}

// KeepCopies copies the file at once and then each day, where something has changed, until
// ctx ends. A copy that fails is logged, and made with the next one.
func (s *Store) KeepCopies(ctx context.Context) {
	next := time.NewTicker(copyEvery)
	defer next.Stop()
	for {
		if err := s.keepCopy(); err != nil {
			s.log.Error("the state was not copied", "folder", copiesOf(s.path), "err", err)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Store) keepCopy() error {
	transaction := 0
	if err := s.view(func(t *tx) error { transaction = t.ID(); return nil }); err != nil {
		return err
	}
	why := fmt.Sprintf("t%d", transaction)
	if newest := Copies(filepath.Dir(s.path)); len(newest) > 0 && strings.HasSuffix(newest[0].Path, "-"+why+".db") {
		return nil
	}
	if err := s.copyTo(s.copyName(why)); err != nil {
		return err
	}
	return forgetCopies(filepath.Dir(s.path))
}

// copyTo makes a copy of the file as it is now, which is there whole or not at all.
func (s *Store) copyTo(name string) error {
	folder := copiesOf(s.path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	path := filepath.Join(folder, name)
	part := path + ".part"
	err := s.db.View(func(t *bbolt.Tx) error { return t.CopyFile(part, 0o600) })
	if err == nil {
		_, err = checkFile(part)
	}
	if err == nil {
		err = syncFile(part)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return errors.Join(os.Rename(part, path), syncDir(folder))
}

// Copy is a copy of the file.
type Copy struct {
	Path string
	At   time.Time
	Size int64
}

// Copies are those of a data directory, the newest first.
func Copies(dir string) (copies []Copy) {
	entries, _ := os.ReadDir(filepath.Join(dir, copiesFolder)) // none where it cannot be read
	for _, e := range entries {
		at, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), "topsail-"), "-")
		made, err := time.Parse(copyTime, at)
		info, infoErr := e.Info()
		if err == nil && infoErr == nil && strings.HasSuffix(e.Name(), ".db") {
			copies = append(copies, Copy{filepath.Join(dir, copiesFolder, e.Name()), made, info.Size()})
		}
	}
	slices.SortFunc(copies, func(a, b Copy) int { return strings.Compare(b.Path, a.Path) })
	return copies
}

// forgetCopies removes the oldest of those that are too many, and what broke off.
func forgetCopies(dir string) error {
	parts, err := filepath.Glob(filepath.Join(dir, copiesFolder, "*.part"))
	gone := parts
	size := int64(0)
	for i, c := range Copies(dir) {
		if size += c.Size; i > 0 && (i >= keptCopies || size > keptBytes) {
			gone = append(gone, c.Path)
		}
	}
	for _, path := range gone {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

func copiesOf(path string) string { return filepath.Join(filepath.Dir(path), copiesFolder) }

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
