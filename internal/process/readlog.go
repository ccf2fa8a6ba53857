//go:build unix

package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
)

const (
	followEvery = 200 * time.Millisecond // looks for what comes
	tailBlock   = 64 << 10               // bytes read at a time to find the last lines
)

// LogReader reads the file that a Child's output goes to, and what its successors
// bring where it starts anew.
type LogReader struct {
	ctx    context.Context // nil: to the end only
	path   string
	file   *os.File
	opened fs.FileInfo
}

// OpenLog opens a log from its last lines on; those before the file last started anew
// do not count. With follow, reading waits for more until ctx ends, and then gives
// io.EOF. A log that is not there yet is empty. The caller closes it.
func OpenLog(ctx context.Context, path string, lines int, follow bool) (*LogReader, error) {
	r := &LogReader{path: path}
	if follow {
		r.ctx = ctx
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	if r.file == nil {
		return r, nil
	}
	at, err := lastLines(r.file, r.opened.Size(), lines)
	if err == nil {
		_, err = r.file.Seek(at, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Read implements io.Reader.
func (r *LogReader) Read(p []byte) (int, error) {
	for {
		if r.file != nil {
			if n, err := r.file.Read(p); n > 0 || err != io.EOF {
				return n, err
			}
		}
		if r.ctx == nil {
			return 0, io.EOF
		}
		if fresh, err := r.next(); err != nil || fresh {
			if err != nil {
				return 0, err
			}
			continue
		}
		if !retry.Sleep(r.ctx, followEvery) {
			return 0, io.EOF
		}
	}
}

// Close implements io.Closer.
func (r *LogReader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// next goes on with the file that has taken the place of the one that was read.
func (r *LogReader) next() (fresh bool, err error) {
	now, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && r.file != nil && os.SameFile(now, r.opened) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := r.Close(); err != nil {
		return false, err
	}
	return true, r.open()
}

func (r *LogReader) open() error {
	r.file = nil
	file, err := os.Open(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.opened, err = file.Stat(); err != nil {
		return errors.Join(err, file.Close())
	}
	r.file = file
	return nil
}

// lastLines is where the last n lines of what has size bytes begin.
func lastLines(r io.ReaderAt, size int64, n int) (int64, error) {
	if n <= 0 {
		return size, nil
	}
	block := make([]byte, tailBlock)
	for end := size; end > 0; {
		begin := max(end-tailBlock, 0)
		part := block[:end-begin]
		if _, err := r.ReadAt(part, begin); err != nil && err != io.EOF {
			return 0, err
		}
		for i := len(part); i > 0; {
			i = bytes.LastIndexByte(part[:i], '\n')
			if i < 0 {
				break
			}
			if begin+int64(i) == size-1 {
				continue // the end of the last line begins none
			}
			if n--; n <= 0 {
				return begin + int64(i) + 1, nil
			}
		}
		end = begin
	}
	return 0, nil
}
