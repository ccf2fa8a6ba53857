package models

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/topsail-serving/topsail/serving/bundle"
)

// parcel is the bundle of a model on the disk, on its way to the management API. It is in a
// folder of its own, which is removed with it.
type parcel struct {
	dir    string
	bundle string // file
}

// The files of a parcel.
const (
	contentFile = "content"    // the model as it came
	modelFolder = "model"      // the files of the bundle
	bundleFile  = "bundle.zip" // the bundle
)

// newParcel makes the folder.
func newParcel() (*parcel, error) {
	dir, err := os.MkdirTemp("", "topsail-model-*")
	if err != nil {
		return nil, fmt.Errorf("make a folder for a model: %w", err)
	}
	return &parcel{dir: dir}, nil
}

func (p *parcel) path(name string) string { return filepath.Join(p.dir, name) }

// remove removes all of it. What a process leaves that is killed is in the folder for
// temporary files.
func (p *parcel) remove() {
	if p != nil {
		_ = os.RemoveAll(p.dir)
	}
}

// receive writes the model as it came, at most most bytes, and compares its checksum.
func (p *parcel) receive(m *Model, from io.Reader, most int64) error {
	f, err := os.OpenFile(p.path(contentFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(from, most+1))
	switch {
	case err != nil:
		return err
	case n > most:
		return rejected(ModelTooLarge, "the model has more than %d bytes: raise max_model_bytes, or make it smaller", most)
	}
	if err := m.unchecked(hex.EncodeToString(hash.Sum(nil))); err != nil {
		return rejected(WrongChecksum, "%v", err)
	}
	return f.Close()
}

// pack makes the bundle of what was received. The same model makes the same bytes.
func (p *parcel) pack(f factory, m *Model, python string, most int64) error {
	if m.Kind == bundleKind {
		p.bundle = p.path(contentFile)
		return nil
	}
	if err := p.unfold(f, m, most); err != nil {
		return err
	}
	p.bundle = p.path(bundleFile)
	out, err := os.OpenFile(p.bundle, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	err = bundle.Write(out, f.manifest(m, python), os.DirFS(p.path(modelFolder)))
	if err == nil {
		return out.Close()
	}
	if _, disk := errors.AsType[*fs.PathError](err); disk {
		return err
	}
	return rejected(Invalid, "no bundle can be made of the model: %v", err)
}

// unfold lays out the files of the bundle.
func (p *parcel) unfold(f factory, m *Model, most int64) error {
	dir := p.path(modelFolder)
	if err := os.RemoveAll(dir); err != nil { // of a try before
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // names of a descriptor do not lead out of it
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // its files are closed
	if m.Archive {
		err = p.unzip(filepath.Join(dir, f.folderOf(m)), most)
	} else {
		err = p.place(root, f.fileOf(m))
	}
	if err == nil && f.own != nil {
		err = f.own.addCode(dir)
	}
	return err
}

// place makes what was received a file of the bundle.
func (p *parcel) place(root *os.Root, name string) error {
	if !fs.ValidPath(name) || name == bundle.ManifestName {
		return rejected(Invalid, "entry %.100q cannot be the name of the model's file", name)
	}
	from, err := os.Open(p.path(contentFile))
	if err != nil {
		return err
	}
	defer from.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return invalid(err, "entry %.100q cannot be the name of the model's file", name)
	}
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return invalid(err, "entry %.100q cannot be the name of the model's file", name)
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// mostFiles bounds the files of an archive, as bundles do.
const mostFiles = 10_000

// unzip unpacks what was received into a folder, at most most bytes.
func (p *parcel) unzip(dir string, most int64) error {
	archive, err := zip.OpenReader(p.path(contentFile))
	if err != nil {
		return invalid(err, "the model is no zip archive, and archive says so")
	}
	defer func() { _ = archive.Close() }() // it was only read
	if n := len(archive.File); n > mostFiles {
		return rejected(ModelTooLarge, "the archive has %d files, and may have %d", n, mostFiles)
	}
	total := int64(0)
	for _, file := range archive.File {
		size := int64(min(file.UncompressedSize64, 1<<40)) // the reader holds files to what they say
		if total += size; total > most {
			return rejected(ModelTooLarge, "the archive unpacks to more than %d bytes: raise max_model_bytes, or make it smaller", most)
		}
	}
	if err := os.CopyFS(dir, archive); err != nil {
		return invalid(err, "the archive cannot be unpacked")
	}
	return nil
}

// invalid makes a rejection of an error that is about the model, and not about this machine.
func invalid(err error, format string, args ...any) error {
	for _, passes := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.EIO, syscall.ENOMEM} {
		if errors.Is(err, passes) {
			return err
		}
	}
	return rejected(Invalid, "%s: %v", fmt.Sprintf(format, args...), err)
}
