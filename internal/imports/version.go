package imports

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/bundle/archive"
)

// Version is a version of a model as Topsail serves it.
type Version struct {
	serving.ModelID                   // without a version: the next number
	Name            string            `json:"name"` // that the other server's clients use
	Source          string            `json:"source"`
	Manifest        *bundle.Manifest  `json:"manifest"` // its files have no checksums yet
	Replicas        int               `json:"replicas,omitempty"`
	Batch           serving.BatchSpec `json:"batch,omitzero"`
	GPUs            int               `json:"gpus,omitempty"` // of each replica
	Notes           []string          `json:"notes"`          // what is not as it was

	files []file
}

// file is a file of a bundle.
type file struct {
	name string // in the bundle
	from fs.FS  // nil: it is made
	at   string // in from
	size int64
	text []byte
}

// newVersion begins a version of a model that its server calls by a name.
func newVersion(name, version, runtime string) *Version {
	v := &Version{Name: name, ModelID: serving.ModelID{Model: modelName(name), Version: version}, Notes: []string{}}
	v.Manifest = &bundle.Manifest{Format: bundle.Format, Runtime: runtime, Options: map[string]string{}}
	if v.Model != name {
		v.note("models have names of lower-case letters, digits and \"-\": it becomes %s; with --app %s clients can keep the name", v.Model, name)
	}
	return v
}

// modelName is the name that a model may have here.
func modelName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return strings.Trim(name[:min(len(name), 63)], "-")
}

func (v *Version) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// signature names inputs and outputs, and makes no difference where there are none.
func (v *Version) signature(inputs, outputs []serving.Tensor) {
	if len(inputs)+len(outputs) > 0 {
		v.Manifest.Signature = &serving.Signature{Inputs: inputs, Outputs: outputs}
	}
}

// take adds files of a folder to the bundle, without the folder's own name: all that are wanted.
func (v *Version) take(from fs.FS, dir string, wanted func(name string) bool) error {
	return fs.WalkDir(from, dir, func(at string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(at, strings.TrimPrefix(dir+"/", "./"))
		switch hidden := at != dir && strings.HasPrefix(entry.Name(), "."); {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || entry.Name() == "__pycache__"):
			return fs.SkipDir
		case entry.IsDir() || hidden || !wanted(name):
			return nil
		}
		return v.takeFile(from, at, name)
	})
}

// takeFile adds one file to the bundle.
func (v *Version) takeFile(from fs.FS, at, name string) error {
	info, err := fs.Stat(from, at)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file: put the file itself there", at)
	}
	if err == nil {
		v.files = append(v.files, file{name: name, from: from, at: at, size: info.Size()})
	}
	return err
}

// complete checks the version, and says which package it needs in which version.
func (v *Version) complete(options Options) error {
	m := v.Manifest
	m.Python = options.Python
	m.Requirements = v.override(m.Requirements, options.Require)
	m.Files = map[string]bundle.File{}
	size := int64(0)
	for _, f := range v.files {
		m.Files[f.name] = bundle.File{Size: f.size}
		size += f.size
	}
	switch _, taken := m.Files[bundle.ManifestName]; {
	case taken:
		return fmt.Errorf("it has a file %s, whose name bundles take for their own: rename it", bundle.ManifestName)
	case len(v.files) > archive.MaxFiles:
		return fmt.Errorf("it has %d files, and a bundle has at most %d", len(v.files), archive.MaxFiles)
	case size > archive.MaxUnpacked:
		return fmt.Errorf("it has %d bytes, and a bundle has at most %d", size, int64(archive.MaxUnpacked))
	}
	errs := []error{serving.CheckModelName(v.Model), m.Check()}
	if v.ModelID.Version != "" {
		errs = append(errs, serving.CheckVersion(v.ModelID.Version))
	}
	return errors.Join(errs...)
}

// override puts lines in the place of those for the same packages, and names packages in any version.
func (v *Version) override(lines, with []string) (all []string) {
	for _, line := range with {
		name, _ := bundle.RequiredPackage(line)
		lines = slices.DeleteFunc(lines, func(l string) bool { other, _ := bundle.RequiredPackage(l); return other == name })
	}
	all = append(lines, with...)
	var open []string
	for _, line := range all {
		if name, any := bundle.RequiredPackage(line); any {
			open = append(open, name)
		}
	}
	if len(open) > 0 {
		v.note("no version is stated of %s: name what the model was made with, as in --require %s==1.0", strings.Join(open, ", "), open[0])
	}
	return all
}

// require adds what a requirements.txt says, if there is one, and packages that it does not name. Packages of the other
// server are left out.
func (v *Version) require(from fs.FS, at string, packages ...string) error {
	text, err := readText(from, at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "\ufeff"), " #")
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, _ := bundle.RequiredPackage(line)
		switch {
		case name == "":
			v.note("%s has %q, which is not a package with its version: --require adds packages", path.Base(at), line)
		case name == "mlserver" || strings.HasPrefix(name, "mlserver-") || name == "torchserve" || strings.HasPrefix(name, "tritonclient"):
		case !named[name]:
			named[name] = true
			v.Manifest.Requirements = append(v.Manifest.Requirements, line)
		}
	}
	for _, p := range packages {
		if name, _ := bundle.RequiredPackage(p); !named[name] {
			v.Manifest.Requirements = append(v.Manifest.Requirements, p)
		}
	}
	return nil
}

// Write writes the files into a folder, which has to be there. The manifest is not among them.
func (v *Version) Write(dir string) error {
	for _, f := range v.files {
		if err := f.write(filepath.Join(dir, filepath.FromSlash(f.name))); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) write(to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if f.from == nil {
		return os.WriteFile(to, f.text, 0o600)
	}
	from, err := f.from.Open(f.at)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(from, f.size+1)) // what an archive says of itself may be wrong
	if err == nil && n != f.size {
		err = fmt.Errorf("%s has %d bytes or more, and should have %d", f.at, n, f.size)
	}
	return errors.Join(err, out.Close())
}
