package bundle

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"

	"github.com/topsail-serving/topsail/serving/bundle/archive"
)

// Bundle is an opened bundle. It reads from the reader that it was opened with.
type Bundle struct {
	Manifest *Manifest

	archive *archive.Archive
}

// Open checks names, sizes and manifest of a bundle of size bytes against each other and
// against the bounds, without unpacking its files. It says what is wrong.
func Open(r io.ReaderAt, size int64) (*Bundle, error) {
	b := &Bundle{}
	var err error
	b.archive, err = archive.Open(r, size, ManifestName, func(text []byte) (map[string]File, error) {
		var err error
		if b.Manifest, err = ParseManifest(text); err != nil {
			return nil, err
		}
		return b.Manifest.Files, nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// ManifestText is the manifest as it is in the archive.
func (b *Bundle) ManifestText() []byte { return b.archive.Head() }

// Verify reads every file, at most as far as the manifest says that it goes, and compares
// it with its checksum.
func (b *Bundle) Verify(ctx context.Context) error { return b.archive.Verify(ctx) }

// Unpack makes the folder dir, which must not exist yet, and writes the files and the
// manifest into it, verifying them as Verify does. After an error the folder is gone again.
func (b *Bundle) Unpack(ctx context.Context, dir string) error {
	if program, ok := b.Manifest.Program(); ok {
		return b.archive.Unpack(ctx, dir, program) // archives made on some systems have no programs
	}
	return b.archive.Unpack(ctx, dir)
}

// Write writes the bundle of all files in from that m describes. Format and Files of m are
// filled in.
func Write(w io.Writer, m *Manifest, from fs.FS) error {
	return archive.Write(w, from, ManifestName, func(files map[string]File) ([]byte, error) {
		m.Format, m.Files = Format, files
		if err := m.Check(); err != nil {
			return nil, err
		}
		return json.MarshalIndent(m, "", "  ")
	})
}
