package intact

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/topsail-serving/topsail/internal/durable"
)

const tempEnding = ".tmp"

// Make makes a folder and its record: fill makes it at temp, which does not exist, and it gets its
// name once it is complete and on the disk. Only one caller may do so at a time.
func Make(ctx context.Context, dir string, fill func(temp string) error) error {
	temp := dir + tempEnding
	if err := os.RemoveAll(temp); err != nil { // of a process that was killed
		return err
	}
	err := fill(temp)
	if err == nil {
		err = persist(ctx, temp)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() { // damage: nothing else makes it so
		if err := os.Remove(dir); err != nil {
			return err
		}
	}
	if err := durable.Rename(temp, dir); err != nil {
		return err
	}
	return Note(ctx, dir)
}

// persist has the disk hold a folder with all that is in it.
func persist(ctx context.Context, dir string) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && (entry.IsDir() || entry.Type().IsRegular()) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	return each(ctx, paths, durable.Sync)
}
