// Package durable replaces files so that they last. What returns without an error is there after a
// power failure, content and name; where one comes before, or the process ends, the file has its old
// content or its new one, and never a part of it. What is left of a replacement that broke off is a
// file beside it, for the caller to remove, or to write the next time.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile gives a file new content, all at once, and permissions, less the process's umask. It writes
// beside it, to its path with ".new" at the end, which the next call writes anew where a call broke off: one
// goroutine writes a file at a time.
func WriteFile(path string, content []byte, perm fs.FileMode) error {
	next := path + ".new"
	err := os.WriteFile(next, content, perm)
	if err == nil {
		err = Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next) // unless it has its name
	}
	return err
}

// Rename gives a file that is complete the name of another in the same file system, which it replaces: its
// content is on the disk before, and its name when Rename returns. The file may be open.
func Rename(from, to string) error {
	if err := Sync(from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return Sync(filepath.Dir(to))
}

// Sync returns once the disk has the content of a file, or the names in a folder.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
