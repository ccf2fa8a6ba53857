//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
)

// tryEvery is how often a lock is tried that another process holds.
const tryEvery = 50 * time.Millisecond

// lock is an open lock file. Processes that inherit the open file hold the lock too: it is free
// when the last of them has ended.
type lock struct {
	path string
	file *os.File
}

// locks are those that a process shares.
type locks []*lock

// inherit lets the process that this one becomes have the locks: a copy of a file
// descriptor stays open where the original, as all of Go's, is closed.
func (l *locks) inherit() error {
	for _, one := range *l {
		fd, err := syscall.Dup(int(one.file.Fd()))
		if err != nil {
			return fmt.Errorf("cannot pass on the lock %s: %w", one.path, err)
		}
		*l = append(*l, &lock{path: one.path, file: os.NewFile(uintptr(fd), one.path)})
	}
	return nil
}

func (l *locks) close() error {
	var errs []error
	for _, one := range *l {
		errs = append(errs, one.close())
	}
	return errors.Join(errs...)
}

// openLock makes the file if there is none.
func openLock(path string) (*lock, error) {
	l := &lock{path: path}
	return l, l.open()
}

func (l *lock) open() (err error) {
	l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, syscall.EISDIR) && os.Remove(l.path) == nil { // damage: nothing is in a lock that could be lost
		l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o644)
	}
	return err
}

// alone waits for the lock to be free of all others, and calls waits if it has to.
func (l *lock) alone(ctx context.Context, waits func()) error {
	return l.take(ctx, syscall.LOCK_EX, waits)
}

func (l *lock) take(ctx context.Context, how int, waits func()) error {
	for first := true; ; first = false {
		taken, err := l.try(how)
		if taken || err != nil {
			return err
		}
		if first {
			waits()
		}
		if err := l.pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits until it is time to try again.
func (l *lock) pause(ctx context.Context) error {
	if !retry.Sleep(ctx, tryEvery) {
		return fmt.Errorf("another process holds %s: %w", l.path, context.Cause(ctx))
	}
	return nil
}

// try takes the lock if it is free. A lock whose file a sweep has removed locks nothing;
// then there is a new file.
func (l *lock) try(how int) (taken bool, err error) {
	switch err := l.flock(how | syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot lock %s: %w", l.path, err)
	}
	mine, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	if there, err := os.Stat(l.path); err == nil && os.SameFile(mine, there) {
		return true, nil
	}
	return false, errors.Join(l.close(), l.open())
}

func (l *lock) flock(how int) error {
	for {
		if err := syscall.Flock(int(l.file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// touch makes now the time of the last start.
func (l *lock) touch() error {
	now := time.Now()
	return os.Chtimes(l.path, now, now)
}

func (l *lock) close() error { return l.file.Close() }
