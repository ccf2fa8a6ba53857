//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	lockEnding = ".lock"
	tempEnding = ".tmp"
)

// slot is a folder that one process of the node makes and many use.
type slot struct {
	what  string // for people, such as "environment 3f2a…"
	dir   string
	ready func() bool // it is whole; what is there else may be thrown away

	// make leaves nothing that is ready if it fails. Processes that it starts get the lock.
	make func(ctx context.Context, l *lock) error
}

// hold makes the folder if it has to, and adds the lock that keeps it to held.
func (s slot) hold(ctx context.Context, held *locks, o *Options) error {
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o755); err != nil {
		return fmt.Errorf("cannot keep the %s: %w", s.what, err)
	}
	l, err := openLock(s.dir + lockEnding)
	if err != nil {
		return fmt.Errorf("cannot keep the %s: %w", s.what, err)
	}
	if err := s.settle(ctx, l, o); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", s.what, err), l.close())
	}
	*held = append(*held, l)
	return nil
}

// settle ends with the folder ready and the lock shared. Between holding a lock alone and
// sharing it others may get it, so it looks again.
func (s slot) settle(ctx context.Context, l *lock, o *Options) error {
	waits := func() { o.say("%s: waiting for another start that is making it", s.what) }
	for {
		if err := l.shared(ctx, waits); err != nil {
			return err
		}
		if s.ready() {
			return l.touch()
		}
		if err := l.alone(ctx, waits); err != nil {
			return err
		}
		if s.ready() {
			continue
		}
		if err := s.make(ctx, l); err != nil {
			return err
		}
		if !s.ready() {
			return errors.New("it is not usable, although it was made")
		}
	}
}

// throughTemp makes a folder elsewhere and gives it its name when it is whole.
func throughTemp(dir string, fill func(temp string) error) error {
	temp := dir + tempEnding
	if err := os.RemoveAll(temp); err != nil { // of a process that was killed
		return err
	}
	if err := fill(temp); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return os.Rename(temp, dir)
}

// isFolder says whether there is a folder of this name.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
