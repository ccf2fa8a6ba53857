package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/web/api"
)

// Archive is a backup that is ready to be written. Close removes what it keeps on disk.
type Archive struct {
	Contents
	state   *os.File
	bundles Bundles
}

// Close removes the files that the archive was put together in.
func (a *Archive) Close() error { return errors.Join(a.state.Close(), os.Remove(a.state.Name())) }

// Name is a name for its file.
func (a *Archive) Name() string { return Name(a.Made) }

// Name is a name for the file of a backup; names sort by time.
func Name(made time.Time) string {
	return "topsail-backup-" + made.UTC().Format("20060102T150405.000Z") + ".tar"
}

// Write writes the archive. Where it fails, what was written has no end, and does not pass
// for a backup.
func (a *Archive) Write(ctx context.Context, to io.Writer) error {
	w := &writer{tar: tar.NewWriter(to), made: a.Made}
	text, err := json.MarshalIndent(a.Contents, "", "  ")
	if err != nil {
		return err
	}
	if err := w.add(contentsName, int64(len(text)), bytes.NewReader(text)); err != nil {
		return err
	}
	size, err := a.state.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := w.add(stateName, size, io.NewSectionReader(a.state, 0, size)); err != nil {
		return err
	}
	for _, b := range a.Bundles {
		if !b.Included {
			continue
		}
		if err := a.writeBundle(ctx, w, b); err != nil {
			return fmt.Errorf("bundle %s: %w", b.Digest, err)
		}
	}
	return w.end()
}

func (a *Archive) writeBundle(ctx context.Context, w *writer, b Bundle) error {
	content, err := a.bundles.Open(ctx, b.Digest)
	if err != nil {
		return err
	}
	defer content.Close()
	return w.add(bundleName(b.Digest), b.Size, io.LimitReader(content, b.Size))
}

// compare fails where a bundle was damaged in its store. It comes before anything is sent, so that
// the client gets the error.
func (a *Archive) compare(ctx context.Context, digest string) error {
	content, err := a.bundles.Open(ctx, digest)
	if err != nil {
		return fmt.Errorf("bundle %s: %w", digest, err)
	}
	defer content.Close()
	got, err := bundle.Digest(content)
	if err != nil {
		return fmt.Errorf("bundle %s: %w", digest, err)
	}
	if got != digest {
		return fmt.Errorf("%w: bundle %s was damaged after it was stored, and has the digest %s: upload it again (topsail artifact push), or back up with --without-bundles",
			api.ErrRefused, digest, got)
	}
	return nil
}

func bundleName(digest string) string {
	return bundlesDir + strings.TrimPrefix(digest, "sha256:") + ".zip"
}

// writer notes the sums of what it writes.
type writer struct {
	tar  *tar.Writer
	made time.Time
	sums bytes.Buffer
}

func (w *writer) add(name string, size int64, from io.Reader) error {
	sum := sha256.New()
	if err := w.put(name, size, io.TeeReader(from, sum)); err != nil {
		return err
	}
	fmt.Fprintf(&w.sums, "%s  %s\n", hex.EncodeToString(sum.Sum(nil)), name)
	return nil
}

func (w *writer) put(name string, size int64, from io.Reader) error {
	err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: w.made, Format: tar.FormatPAX})
	if err == nil {
		_, err = io.Copy(w.tar, from)
	}
	if err == nil {
		err = w.tar.Flush() // fails where there was less
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (w *writer) end() error {
	if err := w.put(sumsName, int64(w.sums.Len()), bytes.NewReader(w.sums.Bytes())); err != nil {
		return err
	}
	return w.tar.Close()
}
