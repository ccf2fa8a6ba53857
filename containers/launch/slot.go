//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/containers/intact"
)

const (
	lockEnding = ".lock"
	tempEnding = ".tmp" // of a folder that package intact makes
)

// slot is a folder that one process of the node makes and many use.
type slot struct {
	what  string // for people, such as "environment 3f2a…"
	dir   string
	ready func() bool // it is whole; what is there else may be thrown away

	// make leaves nothing that is ready if it fails. Processes that it starts get the lock.
	make func(ctx context.Context, l *lock) error
}

// hold makes the folder if it has to, and adds the lock that keeps it to held. failed says that
// a start of the last minutes used the folder and none does now: it may have failed.
func (s slot) hold(ctx context.Context, held *locks, o *Options) (failed bool, err error) {
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o755); err != nil {
		return false, fmt.Errorf("cannot store the %s: %w", s.what, err)
	}
	l, err := openLock(s.dir + lockEnding)
	if err != nil {
		return false, fmt.Errorf("cannot store the %s: %w", s.what, err)
	}
	if failed, err = s.left(l); err == nil {
		err = s.settle(ctx, l, o)
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("%s: %w", s.what, err), l.close())
	}
	*held = append(*held, l)
	return failed, nil
}

// retryEvery is how soon a start follows one that failed, at the latest.
const retryEvery = 10 * time.Minute

// left says whether a start of the last minutes used the folder and none does now.
func (s slot) left(l *lock) (bool, error) {
	info, err := l.file.Stat()
	if err != nil || time.Since(info.ModTime()) > retryEvery || !s.ready() {
		return false, err
	}
	return l.try(syscall.LOCK_EX)
}

// settle ends with the folder ready and the lock shared. A process that waits to make the folder
// polls whether it is ready, because others then share the lock for as long as their models run.
func (s slot) settle(ctx context.Context, l *lock, o *Options) error {
	for first := true; ; {
		shared, err := l.try(syscall.LOCK_SH)
		if err != nil {
			return err
		}
		if shared && s.ready() {
			return l.touch()
		}
		alone, err := l.try(syscall.LOCK_EX)
		if err != nil {
			return err
		}
		switch {
		case alone && s.ready():
			continue // to share it
		case alone:
			if err := s.make(ctx, l); err != nil {
				return err
			}
			if !s.ready() {
				return errors.New("it was built, but is not usable")
			}
			continue
		}
		if err := l.flock(syscall.LOCK_UN); err != nil { // two that share it would wait for each other
			return fmt.Errorf("cannot unlock %s: %w", l.path, err)
		}
		if first {
			o.say("%s: waiting for another start that builds it", s.what)
			first = false
		}
		if err := l.pause(ctx); err != nil {
			return err
		}
	}
}

// repair restores the files of the folder that have changed since it was made, and says so. What
// is known of the folder without a record is in without; fill makes it anew at temp. After a start
// that failed it looks closely. The lock is shared: other models may run from the folder
// meanwhile.
func (s slot) repair(ctx context.Context, o *Options, failed bool, fill func(temp string) error) (err error) {
	if failed {
		if err := intact.RemoveCompiled(s.dir); err != nil {
			o.say("%s: cannot remove the files that Python compiled: %v", s.what, err)
		}
	}
	change, known, err := intact.Check(ctx, s.dir, failed)
	if err != nil {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	if len(change.Extra) > 0 {
		o.say("%s: %s not part of it and may have been written by models, so nothing is removed. Remove it from %s if no model needs it",
			s.what, files(change.Extra, "is", "are"), s.dir)
	}
	if known && len(change.Files) == 0 {
		return nil
	}
	l, err := openLock(s.dir + intact.RepairEnding + lockEnding)
	if err != nil {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.alone(ctx, func() { o.say("%s: waiting for another start that repairs it", s.what) }); err != nil {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	repaired, err := intact.Repair(ctx, s.dir, fill)
	if err != nil {
		what := "it has no record"
		if known {
			what = files(change.Files, "has", "have") + " changed since it was built"
		}
		return fmt.Errorf("%s in %s: %s, and cannot be restored: %w", s.what, s.dir, what, err)
	}
	if len(repaired) > 0 {
		o.say("%s: %s changed since it was built, and was restored", s.what, files(repaired, "has", "have"))
	}
	return nil
}

// files names some files, of which there is one at least, with a verb.
func files(names []string, one, more string) string {
	if len(names) == 1 {
		return names[0] + " " + one
	}
	return fmt.Sprintf("%s and %d more %s", names[0], len(names)-1, more)
}

// isFolder says whether there is a folder of this name.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
