//go:build unix

package process

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// logFile is an append-only file that starts anew when it reaches its limit and
// keeps one predecessor, so that it takes twice the limit at most.
type logFile struct {
	path  string
	limit int64 // bytes
	file  *os.File
	size  int64
	buf   []byte
}

func openLog(path string, limit int64) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	l := &logFile{path: path, limit: limit}
	err := l.reopen()
	if err != nil && os.Rename(path, path+".damaged") == nil { // no reason for its process not to start
		err = l.reopen()
	}
	return l, err
}

func (l *logFile) reopen() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, info.Size()
	return nil
}

// writeLine writes the line after its time in UTC, with one call, so that a
// crash leaves whole lines.
func (l *logFile) writeLine(now time.Time, line []byte) error {
	l.buf = now.UTC().AppendFormat(l.buf[:0], "2006-01-02T15:04:05.000Z ")
	l.buf = append(append(l.buf, line...), '\n')
	if l.size > 0 && l.size+int64(len(l.buf)) > l.limit {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(l.buf)
	l.size += int64(n)
	return err
}

func (l *logFile) rotate() error {
	if err := l.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return err
	}
	return l.reopen()
}

func (l *logFile) close() error { return l.file.Close() }
