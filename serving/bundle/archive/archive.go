package archive

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// The bounds of an archive. Sizes are in bytes.
const (
	MaxArchive  = 4 << 30 // the archive itself
	MaxUnpacked = 8 << 30 // all files together
	MaxFiles    = 10_000  // without the head
	MaxHead     = 1 << 20

	maxRatio  = 1000    // of a file's size to what it takes up in the archive,
	freeRatio = 1 << 20 // once it is larger than this
)

// Archive is an opened archive whose directory is good. It reads from the reader that
// it was opened with, which outlives it.
type Archive struct {
	entries map[string]*zip.File // by name, with the head
	head    string
	text    []byte
	files   map[string]File
}

// Open reads an archive's directory and its head, which list turns into the files that
// have to be there. It says what is wrong with the archive.
func Open(r io.ReaderAt, size int64, head string, list func(text []byte) (map[string]File, error)) (*Archive, error) {
	if err := checkEnd(r, size); err != nil {
		return nil, err
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("this is not a zip archive, or a damaged one: %w", err)
	}
	entries, err := directory(z.File)
	if err != nil {
		return nil, err
	}
	a := &Archive{entries: entries, head: head}
	if a.text, err = a.readHead(); err != nil {
		return nil, err
	}
	if a.files, err = list(a.text); err != nil {
		return nil, fmt.Errorf("%s: %w", head, err)
	}
	return a, a.match()
}

// Head is the text of the head. It is not to be changed.
func (a *Archive) Head() []byte { return a.text }

// readHead reads the head, whose size is bounded before its text is.
func (a *Archive) readHead() ([]byte, error) {
	entry := a.entries[a.head]
	if entry == nil {
		return nil, fmt.Errorf("the archive has no %s at its root", a.head)
	}
	if entry.UncompressedSize64 > MaxHead {
		return nil, fmt.Errorf("%s has more than %d bytes", a.head, MaxHead)
	}
	r, err := entry.Open()
	if err != nil {
		return nil, damaged(a.head, err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, MaxHead+1))
	if err != nil {
		return nil, damaged(a.head, err)
	}
	if uint64(len(text)) != entry.UncompressedSize64 {
		return nil, damaged(a.head, errors.New("it is longer than declared"))
	}
	return text, nil
}

// match holds the list against the directory.
func (a *Archive) match() error {
	if _, ok := a.files[a.head]; ok {
		return fmt.Errorf("%s lists itself: it has no checksum of its own, so leave it out", a.head)
	}
	for name := range a.entries {
		if _, ok := a.files[name]; !ok && name != a.head {
			return fmt.Errorf("the archive contains %q, which %s does not list", name, a.head)
		}
	}
	for _, name := range a.names() {
		file, entry := a.files[name], a.entries[name]
		if entry == nil {
			return fmt.Errorf("%s lists %q, which the archive does not contain", a.head, name)
		}
		if err := file.check(); err != nil {
			return fmt.Errorf("%s: file %q: %w", a.head, name, err)
		}
		if entry.UncompressedSize64 != uint64(file.Size) {
			return fmt.Errorf("file %q has %d bytes, and %s says %d", name, entry.UncompressedSize64, a.head, file.Size)
		}
	}
	return nil
}

// names lists the files in order, so that errors and what is on disk do not depend on chance.
func (a *Archive) names() []string { return slices.Sorted(maps.Keys(a.files)) }

func damaged(name string, err error) error { return fmt.Errorf("file %q is damaged: %w", name, err) }
