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

	"github.com/topsail-serving/topsail/internal/durable"
)

// The folder copies, beside the file, has the last good copies of it: one of each start and
// each day, within bounds; the newest always. Beside these it has the newest that is whole, where
// those since are of a state from which something was set aside.
const (
	copiesFolder = "copies"
	copyEvery    = 24 * time.Hour
	keptCopies   = 7
	keptBytes    = 1 << 30
)

// partial is what the names of copies end with that lack something.
const partial = "-partial.db"

// copyTime is in the names of copies, which sort by it.
const copyTime = "20060102T150405.000Z"

func copyName(ending string) string {
	return "topsail-" + time.Now().UTC().Format(copyTime) + ending
}

// isGood says whether a file can be opened, with all that is in it.
func isGood(path string) bool {
	found, err := Check(path)
	return err == nil && len(found) == 0
}

// KeepCopies copies the file at once and then each day, where something has changed, until
// ctx ends. A copy that fails is logged, and made with the next one.
func (s *Store) KeepCopies(ctx context.Context) error {
	next := time.NewTicker(copyEvery)
	defer next.Stop()
	for {
		if err := s.keepCopy(); err != nil {
			s.log.Error("the state was not copied", "folder", copiesOf(s.path), "err", err)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Store) keepCopy() error {
	transaction, lost := 0, s.Damaged()
	if err := s.view(func(t *tx) error { transaction, lost = t.ID(), lost || t.bucket(damagedBucket) != nil; return nil }); err != nil {
		return err
	}
	ending := fmt.Sprintf("-t%d.db", transaction)
	if lost {
		ending = strings.TrimSuffix(ending, ".db") + partial
	}
	if newest := Copies(filepath.Dir(s.path)); len(newest) > 0 && strings.HasSuffix(newest[0].Path, ending) && isGood(newest[0].Path) {
		return nil
	}
	if err := s.copyTo(copyName(ending)); err != nil {
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
		err = durable.Rename(part, path)
	}
	if err != nil {
		_ = os.Remove(part) // where it still has this name; what is left, forgetCopies removes
	}
	return err
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
	gone, err := filepath.Glob(filepath.Join(dir, copiesFolder, "*.part"))
	size, kept, whole := int64(0), 0, false
	for _, c := range Copies(dir) {
		size, kept = size+c.Size, kept+1
		newestWhole := !whole && !strings.HasSuffix(c.Path, partial)
		whole = whole || newestWhole
		if !newestWhole && kept > 1 && (kept > keptCopies || size > keptBytes) {
			gone = append(gone, c.Path)
		}
	}
	for _, path := range gone {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

func copiesOf(path string) string { return filepath.Join(filepath.Dir(path), copiesFolder) }
