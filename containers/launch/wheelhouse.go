//go:build unix

package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/topsail-serving/topsail/containers/intact"
	"github.com/topsail-serving/topsail/internal/durable"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/bundle/archive"
)

// Wheelhouses carry the packages of an environment to nodes without an index: archives of
// wheels with a head of their own. Environments themselves cannot be carried, since they
// name their own place.

const (
	wheelhouseHead   = "wheelhouse.json"
	wheelhouseFormat = 1
)

// wheelhouse is the head of such an archive.
type wheelhouse struct {
	Format       int                     `json:"format"`
	Environment  string                  `json:"environment"` // its id
	Python       string                  `json:"python"`
	Requirements []string                `json:"requirements"`
	Machine      string                  `json:"machine"` // as Go names it, such as "linux/amd64"
	Files        map[string]archive.File `json:"files"`
}

// wheelhouse is the folder of the wheels for an environment, which need not be there.
func (o *Options) wheelhouse(id string) string { return filepath.Join(o.Work, "wheelhouses", id) }

// PackEnvironment writes an archive to the file out that lets nodes without an index build
// the environment of the bundle. It needs an index itself, and a machine such as the nodes
// are. Of o, what Run needs to build an environment is used; o.Work is not.
func PackEnvironment(ctx context.Context, o Options, out string) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("it was not ready after %v", o.Timeout))
	defer cancel()
	m, err := o.manifest()
	if err != nil {
		return err
	}
	if len(m.Requirements) == 0 {
		return errors.New("the bundle requires no packages, so its nodes need no wheelhouse")
	}
	python, err := o.findPython(m)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "topsail-wheels-")
	if err != nil {
		return err
	}
	wheels := filepath.Join(temp, "wheels")
	err = o.fetchWheels(ctx, filepath.Join(temp, "venv"), wheels, m, python)
	if err == nil {
		err = writeWheelhouse(out, wheels, m)
	}
	return errors.Join(err, os.RemoveAll(temp))
}

func (o *Options) manifest() (*bundle.Manifest, error) {
	f, err := os.Open(o.Bundle)
	if err != nil {
		return nil, fmt.Errorf("cannot read the bundle: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read the bundle: %w", err)
	}
	b, err := bundle.Open(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Bundle, err)
	}
	return b.Manifest, nil
}

// fetchWheels lets pip collect all packages as wheels, and build those that have none.
func (o *Options) fetchWheels(ctx context.Context, venv, wheels string, m *bundle.Manifest, python string) error {
	if err := os.Mkdir(wheels, 0o755); err != nil {
		return err
	}
	list, err := o.venv(ctx, nil, venv, python, m)
	if err != nil {
		return err
	}
	out := newProgress(o.Log, "environment "+bundle.EnvironmentID(m))
	out.say("collecting wheels of %s for Python %s", packages(len(m.Requirements)), m.Python)
	err = o.command(ctx, nil, out, filepath.Join(venv, "bin", "python"), "-m", "pip", "wheel", "--disable-pip-version-check", "--no-input",
		"--progress-bar", "off", "--wheel-dir", wheels, "-r", list)
	if err != nil {
		return fmt.Errorf("cannot collect the packages: %w\n%s", err, out.advice())
	}
	return nil
}

func writeWheelhouse(out, wheels string, m *bundle.Manifest) error {
	f, err := os.CreateTemp(filepath.Dir(out), filepath.Base(out)+".*")
	if err != nil {
		return fmt.Errorf("cannot write the wheelhouse: %w", err)
	}
	err = archive.Write(f, os.DirFS(wheels), wheelhouseHead, func(files map[string]archive.File) ([]byte, error) {
		return json.MarshalIndent(wheelhouse{
			Format: wheelhouseFormat, Environment: bundle.EnvironmentID(m), Python: m.Python, Requirements: m.Requirements,
			Machine: machine(), Files: files,
		}, "", "  ")
	})
	if err = errors.Join(err, f.Close()); err == nil {
		err = durable.Rename(f.Name(), out)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write the wheelhouse: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// LoadEnvironment unpacks an archive that PackEnvironment has made into a work folder.
// Then environments with the id that it returns are built from it alone.
func LoadEnvironment(ctx context.Context, path, work string) (id string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the wheelhouse: %w", err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fmt.Errorf("cannot read the wheelhouse: %w", err)
	}
	house, a, err := openWheelhouse(f, size)
	if err != nil {
		return "", fmt.Errorf("%s is not a wheelhouse for this node: %w", path, err)
	}
	dir := (&Options{Work: work}).wheelhouse(house.Environment)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	l, err := openLock(dir + lockEnding)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.alone(ctx, func() {}); err != nil {
		return "", err
	}
	return house.Environment, intact.Make(ctx, dir, func(temp string) error {
		if err := a.Unpack(ctx, temp); err != nil {
			return err
		}
		return removeWhole(dir) // of an earlier archive
	})
}

func openWheelhouse(r io.ReaderAt, size int64) (house wheelhouse, a *archive.Archive, err error) {
	a, err = archive.Open(r, size, wheelhouseHead, func(text []byte) (map[string]archive.File, error) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&house); err != nil {
			return nil, err
		}
		return house.Files, house.check()
	})
	return house, a, err
}

func (w *wheelhouse) check() error {
	id := bundle.EnvironmentID(&bundle.Manifest{Python: w.Python, Requirements: w.Requirements})
	switch {
	case w.Format != wheelhouseFormat:
		return fmt.Errorf("it has format %d, and this release reads format %d", w.Format, wheelhouseFormat)
	case w.Environment != id:
		return fmt.Errorf("it is labelled for environment %q, but its requirements make %s", w.Environment, id)
	case w.Machine != machine():
		return fmt.Errorf("it is for %s, and this is %s: make one on a machine like this", w.Machine, machine())
	}
	for name := range w.Files {
		if strings.Contains(name, "/") || !strings.HasSuffix(name, ".whl") {
			return fmt.Errorf("%q is not a wheel", name)
		}
	}
	return nil
}

func machine() string { return runtime.GOOS + "/" + runtime.GOARCH }
