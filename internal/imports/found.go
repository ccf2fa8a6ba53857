package imports

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Options say what the files do not.
type Options struct {
	Python  string   // of the bundles, as MAJOR.MINOR
	Require []string // packages that every model needs, in the place of what its files say of them
}

// Found is what a path has. It reads from open files until it is closed.
type Found struct {
	Versions []*Version `json:"versions"`
	Refused  []Refused  `json:"refused"`

	open []io.Closer
}

// Refused is a model that cannot be brought.
type Refused struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Why    string `json:"why"`
}

// Close closes what was opened.
func (f *Found) Close() error {
	var errs []error
	for _, c := range f.open {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// The servers whose files are read.
const (
	MLServer   = "MLServer"
	Triton     = "Triton"
	TorchServe = "TorchServe"
)

// server is one of them: what its folders are known by, and what reads one of these, which another server has called
// by the name.
type server struct {
	name, mark string
	read       func(from fs.FS, name string) ([]*Version, error)
}

var servers = []server{
	{MLServer, settingsName, readMLServer},
	{Triton, configName, readTriton},
	{TorchServe, marName, readMAR},
}

const marEnding = ".mar"

// Find reads the models at a path: of one folder or archive, or of those in a folder. It has to be closed.
func Find(at string, options Options) (*Found, error) {
	f := &Found{Versions: []*Version{}, Refused: []Refused{}}
	err := f.look(at, options)
	if err == nil && len(f.Versions)+len(f.Refused) == 0 {
		err = fmt.Errorf("%s has no models: looked for %s (MLServer), %s (Triton), files *%s and %s (TorchServe), there and one folder below",
			at, settingsName, configName, marEnding, marName)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Found) look(at string, options Options) error {
	info, err := os.Stat(at)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		f.archive(at, options)
		return nil
	}
	if known, err := f.folder(at, options); known || err != nil {
		return err
	}
	return f.children(at, options)
}

// folder reads a folder of one model, and says whether it is one.
func (f *Found) folder(at string, options Options) (known bool, err error) {
	whole, err := filepath.Abs(at) // "." has no name
	if err != nil {
		return false, err
	}
	root, err := os.OpenRoot(at) // nothing that a file names leads out of it
	if err != nil {
		return false, err
	}
	name := filepath.Base(whole)
	for _, s := range servers {
		if _, err := fs.Stat(root.FS(), s.mark); err == nil {
			f.open = append(f.open, root)
			f.add(s, root.FS(), name, options)
			return true, nil
		}
	}
	if info, err := fs.Stat(root.FS(), "1"); err == nil && info.IsDir() {
		f.Refused = append(f.Refused, Refused{name, Triton, "it has no " + configName + ": " + autoComplete})
		known = true
	}
	return known, root.Close()
}

// children reads the models in a folder.
func (f *Found) children(at string, options Options) error {
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := filepath.Join(at, e.Name())
		info, err := os.Stat(below)
		switch {
		case err != nil:
		case info.IsDir():
			_, err = f.folder(below, options)
		case strings.HasSuffix(e.Name(), marEnding):
			f.archive(below, options)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// archive reads an archive of TorchServe.
func (f *Found) archive(at string, options Options) {
	name := strings.TrimSuffix(filepath.Base(at), marEnding)
	z, err := zip.OpenReader(at)
	if err != nil {
		f.Refused = append(f.Refused, Refused{name, TorchServe, fmt.Sprintf("%s is not a zip archive: %v", filepath.Base(at), err)})
		return
	}
	f.open = append(f.open, z)
	f.add(server{name: TorchServe, read: readMAR}, z, name, options)
}

// add takes over what a server's files say of one model.
func (f *Found) add(s server, from fs.FS, name string, options Options) {
	versions, err := s.read(from, name)
	for _, v := range versions {
		v.Source = s.name
		if err == nil {
			err = v.complete(options)
		}
		for _, other := range f.Versions {
			if err == nil && other.ModelID == v.ModelID {
				err = fmt.Errorf("%v is also made of %q: rename one", v.ModelID, other.Name)
			}
		}
	}
	if err != nil {
		f.Refused = append(f.Refused, Refused{name, s.name, err.Error()})
		return
	}
	f.Versions = append(f.Versions, versions...)
}

const maxText = 1 << 20 // bytes of a configuration file

// readText reads a configuration file.
func readText(from fs.FS, name string) ([]byte, error) {
	file, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxText+1))
	if err == nil && len(text) > maxText {
		err = fmt.Errorf("%s has more than %d bytes", path.Base(name), maxText)
	}
	return text, err
}
