//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/containers/intact"
	"github.com/topsail-serving/topsail/serving/bundle"
)

// completeName is the record in an environment that says that it is whole. Environments
// name their own place in many files and cannot be renamed, so this stands for a rename.
const completeName = "complete"

// environment is where a model finds its packages.
type environment struct {
	python string // path of the interpreter
	dir    string // empty: the interpreter's own packages are all
}

// environment is that which the manifest requires; python is the interpreter found for it.
func (o *Options) environment(ctx context.Context, held *locks, m *bundle.Manifest, python string, failed bool) (environment, error) {
	if len(m.Requirements) == 0 {
		return environment{python: python}, nil
	}
	id := bundle.EnvironmentID(m)
	e := environment{dir: filepath.Join(o.Work, "environments", id)}
	e.python = filepath.Join(e.dir, "bin", "python")
	s := slot{
		what:  "environment " + id,
		dir:   e.dir,
		ready: e.ready,
		make:  func(ctx context.Context, l *lock) error { return o.build(ctx, l, e, m, python) },
	}
	if failed {
		if err := s.condemn(ctx, o, e); err != nil {
			return e, err
		}
	}
	_, err := s.hold(ctx, held, o)
	return e, err
}

// condemn has the environment built again where a file in it has changed since. Its digests
// are compared only after a start that failed, and while no other model uses it, since
// environments are large, and one that is in use cannot be built again.
func (s slot) condemn(ctx context.Context, o *Options, e environment) (err error) {
	l, err := openLock(s.dir + lockEnding)
	if err != nil {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if free, err := l.try(syscall.LOCK_EX); !free || err != nil || !e.ready() {
		return err
	}
	change, _, err := intact.Check(ctx, e.dir, true)
	if err != nil || len(change.Files) == 0 {
		return err
	}
	o.say("%s: %s changed since it was built, so it is built again", s.what, files(change.Files, "has", "have"))
	return os.Remove(filepath.Join(e.dir, completeName))
}

// ready is false also where the Python that the environment was made of is gone.
func (e environment) ready() bool {
	for _, path := range []string{filepath.Join(e.dir, completeName), e.python} {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

// build makes the environment. What is there of an earlier try goes first.
func (o *Options) build(ctx context.Context, l *lock, e environment, m *bundle.Manifest, python string) error {
	if err := os.RemoveAll(e.dir); err != nil {
		return fmt.Errorf("cannot remove the files of an earlier attempt: %w", err)
	}
	if err := o.install(ctx, l, e, m, python); err != nil {
		return errors.Join(err, os.RemoveAll(e.dir))
	}
	record := time.Now().UTC().Format(time.RFC3339) + " Python " + m.Python + " " + python + "\n"
	if err := intact.Note(ctx, e.dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.dir, completeName), []byte(record), 0o644)
}

func (o *Options) install(ctx context.Context, l *lock, e environment, m *bundle.Manifest, python string) error {
	id := filepath.Base(e.dir)
	out := newProgress(o.Log, "environment "+id)
	out.say("installing %s on Python %s", packages(len(m.Requirements)), m.Python)
	list, err := o.venv(ctx, l, e.dir, python, m)
	if err != nil {
		return err
	}
	args := []string{"-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "-r", list}
	if house := o.wheelhouse(id); isFolder(house) {
		out.say("from the wheelhouse %s, without an index", house)
		switch change, _, err := intact.Check(ctx, house, true); {
		case err != nil:
			return err
		case len(change.Files) > 0:
			return fmt.Errorf("the wheelhouse %s is damaged: %s changed; load it again with `topsail environment load`",
				house, files(change.Files, "has", "have"))
		}
		args = append(args, "--no-index", "--find-links", house)
	}
	if err := o.command(ctx, l, out, e.python, args...); err != nil {
		return fmt.Errorf("cannot install the packages: %w\n%s", err, out.advice())
	}
	out.say("ready")
	return nil
}

// venv makes a virtual environment, and in it the list of requirements, whose path it returns.
func (o *Options) venv(ctx context.Context, l *lock, dir, python string, m *bundle.Manifest) (list string, err error) {
	out := newProgress(o.Log, "venv")
	if err := o.command(ctx, l, out, python, "-m", "venv", dir); err != nil {
		return "", fmt.Errorf("%s -m venv failed: %w\n%sOn Debian and Ubuntu the package python%s-venv is needed",
			python, err, out.tail(), m.Python)
	}
	list = filepath.Join(dir, "requirements.txt")
	return list, os.WriteFile(list, []byte(strings.Join(m.Requirements, "\n")+"\n"), 0o644)
}

func packages(n int) string {
	if n == 1 {
		return "1 package"
	}
	return fmt.Sprintf("%d packages", n)
}
