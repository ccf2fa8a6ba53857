package intact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/topsail-serving/topsail/internal/durable"
)

// compiled is the name of the folders of what Python has compiled.
const compiled = "__pycache__"

// Repair restores every file of a folder that differs from a copy or is missing, and returns their
// names in order. Each is replaced at once, so that processes that use the folder go on. fill
// makes the copy at temp, which does not exist; it is gone afterwards. Files that are not in the
// copy stay. Only one caller may repair at a time; others may read.
func Repair(ctx context.Context, dir string, fill func(temp string) error) (repaired []string, err error) {
	temp := dir + RepairEnding + tempEnding
	if err := os.RemoveAll(temp); err != nil { // of a process that was killed
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := fill(temp); err != nil {
		return nil, err
	}
	names, err := list(temp)
	if err != nil {
		return nil, err
	}
	if repaired, err = differing(ctx, dir, temp, names); err != nil {
		return nil, err
	}
	for _, name := range repaired {
		if err := replace(dir, name, filepath.Join(temp, name)); err != nil {
			return nil, fmt.Errorf("cannot restore %s: %w", filepath.Join(dir, name), err)
		}
	}
	if len(repaired) > 0 {
		if err := RemoveCompiled(dir); err != nil { // from what had changed
			return nil, err
		}
	}
	return repaired, note(ctx, dir, names)
}

// RepairEnding follows the name of a folder in that of its copy while it is repaired.
const RepairEnding = ".mend"

// differing are the files that a folder does not have as a copy has them.
func differing(ctx context.Context, dir, from string, names []string) (other []string, err error) {
	var mu sync.Mutex
	err = each(ctx, names, func(name string) error {
		f, err := look(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if f.SHA256, err = sum(ctx, filepath.Join(from, name)); err != nil {
			return err
		}
		if _, same := f.compare(ctx, filepath.Join(dir, name), true); !same {
			mu.Lock()
			defer mu.Unlock()
			other = append(other, name)
		}
		return nil
	})
	slices.Sort(other)
	return other, err
}

// replace gives a folder a file, in place of whatever has its name or that of a folder above.
func replace(dir, name, from string) error {
	path := filepath.Join(dir, name)
	if err := clearWay(dir, filepath.Dir(name)); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return durable.Rename(from, path)
}

// clearWay makes the folders of a path below dir, in place of what is there else.
func clearWay(dir, path string) error {
	if path == "." {
		return os.MkdirAll(dir, 0o755)
	}
	if err := clearWay(dir, filepath.Dir(path)); err != nil {
		return err
	}
	at := filepath.Join(dir, path)
	if info, err := os.Lstat(at); err == nil && !info.IsDir() {
		if err := os.Remove(at); err != nil {
			return err
		}
	}
	err := os.Mkdir(at, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// RemoveCompiled removes from a folder what Python has compiled, which it compiles again.
func RemoveCompiled(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == compiled:
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return fs.SkipDir
		}
		return nil
	})
}
