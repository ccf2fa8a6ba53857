package access

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	lookEvery = time.Second
	maxFile   = 1 << 20 // bytes that a file may hold
)

// source is a file on disk.
type source struct {
	path   string
	secret bool // it is for its owner and its group only
}

// file is a value that some sources hold, as they are now.
type file[T any] struct {
	sources []source
	parse   func(contents [][]byte) (T, error)
	log     *slog.Logger
	every   time.Duration // a file that was looked at counts as unchanged for so long

	opened time.Time
	looked atomic.Int64 // when the sources were last looked at, since opened
	value  atomic.Pointer[T]

	looking   sync.Mutex    // guards the following
	seen      []fs.FileInfo // of the sources that value was read from
	complaint string        // why the sources as they are now cannot be used, or ""
}

// open reads the sources, and fails if they cannot be used. A nil log discards.
func open[T any](log *slog.Logger, parse func(contents [][]byte) (T, error), sources ...source) (*file[T], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &file[T]{sources: sources, parse: parse, log: log, every: lookEvery, opened: time.Now()}
	return f, f.read()
}

// get is the value as of at most a second ago. Only one of many callers looks at
// the sources, and none waits for it.
func (f *file[T]) get() T {
	now := time.Since(f.opened)
	if now-time.Duration(f.looked.Load()) >= f.every && f.looking.TryLock() {
		defer f.looking.Unlock()
		f.look()
		f.looked.Store(int64(now))
	}
	return *f.value.Load()
}

// fresh is the value as of now.
func (f *file[T]) fresh() T {
	f.looking.Lock()
	defer f.looking.Unlock()
	f.look()
	return *f.value.Load()
}

// look reads the sources again if they have changed, and while they cannot be
// used: what is wrong may be no more than their mode.
func (f *file[T]) look() {
	if f.complaint == "" && f.unchanged() {
		return
	}
	if err := f.read(); err != nil {
		if text := err.Error(); text != f.complaint {
			f.complaint = text
			f.log.Error("a changed file cannot be used; its previous contents stay in use", "err", err)
		}
		return
	}
	f.complaint = ""
	f.log.Info("read a changed file", "path", f.sources[0].path)
}

func (f *file[T]) unchanged() bool {
	for i, s := range f.sources {
		now, err := os.Stat(s.path)
		was := f.seen[i]
		if err != nil || !os.SameFile(now, was) || !now.ModTime().Equal(was.ModTime()) || now.Size() != was.Size() {
			return false
		}
	}
	return true
}

// read takes the value from the sources, or leaves everything as it was.
func (f *file[T]) read() error {
	infos, contents := make([]fs.FileInfo, len(f.sources)), make([][]byte, len(f.sources))
	for i, s := range f.sources {
		var err error
		if infos[i], contents[i], err = s.read(); err != nil {
			return fmt.Errorf("access: cannot read %s: %w", s.path, err)
		}
	}
	value, err := f.parse(contents)
	if err != nil {
		return fmt.Errorf("access: cannot use %s: %w", f.sources[0].path, err)
	}
	f.value.Store(&value)
	f.seen = infos
	for i, s := range f.sources {
		if mode := infos[i].Mode().Perm(); s.secret && mode&0o007 != 0 {
			f.log.Warn("every user of this machine can read a secret file: chmod o= FILE", "path", s.path, "mode", mode)
		}
	}
	return nil
}

// read returns what the source holds, and what it was like just before: so that a
// change in between is seen the next time.
func (s source) read() (fs.FileInfo, []byte, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, nil, plain(err)
	}
	if !info.Mode().IsRegular() { // a pipe would keep us waiting, and is empty the second time
		return nil, nil, errors.New("it is not a regular file")
	}
	from, err := os.Open(s.path)
	if err != nil {
		return nil, nil, plain(err)
	}
	defer from.Close()
	content, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return info, content, plain(err)
}

// plain leaves out the path, which the caller adds.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
