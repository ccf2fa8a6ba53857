package archive

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
)

// Write writes an archive of all files in from; describe makes the head of them. The
// same files make the same bytes, since no times are in the archive. Files are stored as
// they are: models hardly get smaller, and one of nothing but zeros would be refused.
func Write(w io.Writer, from fs.FS, head string, describe func(files map[string]File) ([]byte, error)) error {
	modes, err := walk(from)
	if err != nil {
		return err
	}
	files := make(map[string]File, len(modes))
	for name := range modes {
		hash := sha256.New()
		size, err := copyFrom(hash, from, name)
		if err != nil {
			return err
		}
		files[name] = File{SHA256: hex.EncodeToString(hash.Sum(nil)), Size: size}
	}
	text, err := describe(files)
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	if err := writeHead(z, head, text); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		if err := writeEntry(z, from, name, modes[name], files[name].Size); err != nil {
			return err
		}
	}
	return z.Close()
}

// walk lists the files with their modes, and refuses what no archive may hold.
func walk(from fs.FS) (map[string]fs.FileMode, error) {
	modes := map[string]fs.FileMode{}
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%q is a link or a device: only files can be packed", name)
		}
		if err := checkName(name); err != nil {
			return fmt.Errorf("file %q: %w", name, err)
		}
		modes[name] = info.Mode()
		return nil
	})
	return modes, err
}

func writeHead(z *zip.Writer, head string, text []byte) error {
	header := &zip.FileHeader{Name: head, Method: zip.Deflate}
	header.SetMode(0o644)
	w, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func writeEntry(z *zip.Writer, from fs.FS, name string, mode fs.FileMode, size int64) error {
	header := &zip.FileHeader{Name: name, Method: zip.Store}
	header.SetMode(0o644 | mode&0o111)
	w, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	n, err := copyFrom(w, from, name)
	if err == nil && n != size {
		err = fmt.Errorf("file %q changed while it was packed", name)
	}
	return err
}

func copyFrom(w io.Writer, from fs.FS, name string) (int64, error) {
	f, err := from.Open(name)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(w, f)
	return n, errors.Join(err, f.Close())
}
