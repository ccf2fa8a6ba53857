package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/web/api"
)

// Bounds of what is read of a backup, in bytes.
const (
	maxContents = 64 << 20
	maxItem     = 32 << 20
	maxState    = 16 << 30
	maxMembers  = 1 << 20
)

// File is a backup that was checked: all its sums match.
type File struct {
	Contents
	from    io.ReaderAt
	members map[string]member
}

// member is where a member's bytes are.
type member struct{ at, size int64 }

// Open reads and checks a backup of size bytes. It fails with api.ErrBackupInvalid.
func Open(from io.ReaderAt, size int64) (*File, error) {
	f := &File{from: from, members: map[string]member{}}
	if err := f.check(size); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrBackupInvalid, err)
	}
	return f, nil
}

func (f *File) check(size int64) error {
	sums, err := f.readMembers(size)
	if err != nil {
		return err
	}
	said, err := f.read(sumsName, maxContents)
	if err != nil {
		return fmt.Errorf("it is truncated: %w", err)
	}
	delete(sums, sumsName)
	for line := range strings.Lines(string(said)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if got, there := sums[name]; !there || got != sum {
			return fmt.Errorf("the checksum of %.100q does not match", name)
		}
		delete(sums, name)
	}
	if len(sums) > 0 {
		return fmt.Errorf("there is no checksum of %.100q", slices.Sorted(maps.Keys(sums))[0])
	}
	return f.checkContents()
}

// readMembers notes where the members are, and returns their sums.
func (f *File) readMembers(size int64) (sums map[string]string, err error) {
	at := &counted{from: io.NewSectionReader(f.from, 0, size)}
	archive, sums := tar.NewReader(at), map[string]string{}
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return sums, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is not a tar archive, or is truncated: %w", err)
		}
		if _, again := f.members[h.Name]; again || h.Typeflag != tar.TypeReg || len(f.members) >= maxMembers {
			return nil, fmt.Errorf("%.100q does not belong in a backup", h.Name)
		}
		f.members[h.Name] = member{at.n, h.Size}
		sum := sha256.New()
		if _, err := io.Copy(sum, archive); err != nil {
			return nil, fmt.Errorf("%.100q is truncated: %w", h.Name, err)
		}
		sums[h.Name] = hex.EncodeToString(sum.Sum(nil))
	}
}

// counted counts what is read of a reader, which must not seek.
type counted struct {
	from io.Reader
	n    int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

func (f *File) open(name string) (*io.SectionReader, error) {
	m, there := f.members[name]
	if !there {
		return nil, fmt.Errorf("%s is missing", name)
	}
	return io.NewSectionReader(f.from, m.at, m.size), nil
}

func (f *File) read(name string, most int64) ([]byte, error) {
	r, err := f.open(name)
	if err != nil {
		return nil, err
	}
	if r.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are allowed", name, r.Size(), most)
	}
	return io.ReadAll(r)
}

// checkContents reads the contents, and all of the state once.
func (f *File) checkContents() error {
	text, err := f.read(contentsName, maxContents)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &f.Contents); err != nil {
		return fmt.Errorf("%s: %w", contentsName, err)
	}
	if f.Format > format {
		return fmt.Errorf("its format is %d, and this topsail reads up to %d: use the release that made it, %s, or a later one", f.Format, format, f.Release)
	}
	if f.Format < 1 {
		return errors.New("it names no format")
	}
	for _, b := range f.Bundles {
		if _, err := bundle.ParseDigest(b.Digest); err != nil {
			return err
		}
		m, there := f.members[bundleName(b.Digest)]
		if there != b.Included || there && m.size != b.Size {
			return fmt.Errorf("bundle %s does not match the list of contents", b.Digest)
		}
	}
	for _, err := range f.Items() {
		if err != nil {
			return err
		}
	}
	return nil
}

// Items are the pieces of the state, in the order of the file. The last may be an error.
func (f *File) Items() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		r, err := f.open(stateName)
		if err != nil {
			yield(Item{}, err)
			return
		}
		text, err := gzip.NewReader(r)
		if err != nil {
			yield(Item{}, fmt.Errorf("%s: %w", stateName, err))
			return
		}
		lines := bufio.NewScanner(io.LimitReader(text, maxState))
		lines.Buffer(nil, maxItem)
		for lines.Scan() {
			var item Item
			if err := json.Unmarshal(lines.Bytes(), &item); err != nil {
				yield(Item{}, fmt.Errorf("%s: %w", stateName, err))
				return
			}
			if item.Document != nil {
				item.Document.JSON = bytes.Clone(item.Document.JSON)
			}
			if !yield(item, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Item{}, fmt.Errorf("%s: %w", stateName, err))
		}
	}
}

// Bundle opens a bundle that is included.
func (f *File) Bundle(digest string) (io.Reader, error) { return f.open(bundleName(digest)) }
