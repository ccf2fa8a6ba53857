package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/topsail-serving/topsail/internal/check"
)

// What a file system must have free, and should: in bytes, beside what the next bundle and the
// next copy of the state take, and in files, of which a bundle has up to 10,000.
const (
	leastBytes  = 16 << 20
	marginBytes = 1 << 30
	leastFiles  = 100
	marginFiles = 20_000
)

// room is what a file system has free. files is below zero where it has no bound.
type room struct{ bytes, files int64 }

// freeSpace judges the file system of a folder, or of the one that it would be made in: a
// bundle as large as the largest there, and a copy of the state, must fit in.
func freeSpace(name, dir string) check.Finding {
	free, err := roomOf(existing(dir))
	if err != nil {
		return check.Bad(name, fmt.Sprintf("%s: %v", dir, err), "repair the disk, or set another folder")
	}
	return judgeSpace(name, dir, free, leastBytes+largest(dir))
}

func judgeSpace(name, dir string, free room, need int64) check.Finding {
	f := check.Good(name, "%s free for %s, which needs %s for the next bundle and the next copy of the state", inBytes(free.bytes), dir, inBytes(need))
	switch {
	case free.bytes < need:
		f.State = check.Failed
	case free.files >= 0 && free.files < leastFiles:
		f.State, f.Detail = check.Failed, fmt.Sprintf("room for %d more files for %s", free.files, dir)
	case free.files >= 0 && free.files < marginFiles:
		f.State, f.Detail = check.Warn, fmt.Sprintf("room for %d more files for %s, and a bundle may have 10,000", free.files, dir)
	case free.bytes < need+marginBytes:
		f.State = check.Warn
	default:
		return f
	}
	f.Next = "free disk space: delete bundles that no version uses (`topsail artifact delete`), old logs, or other files"
	return f
}

func roomOf(dir string) (room, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return room{}, err
	}
	free := room{bytes: int64(float64(s.Bavail) * float64(s.Bsize)), files: int64(s.Ffree)}
	if s.Files == 0 { // files are made as there is room for them
		free.files = -1
	}
	return free, nil
}

// largest is what the largest archive in the folder's bundles and its file of state have
// together, in bytes.
func largest(dir string) (n int64) {
	for _, pattern := range []string{"bundles/*.zip", "*.zip"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range found {
			n = max(n, sizeOf(path))
		}
	}
	return n + sizeOf(filepath.Join(dir, "topsail.db"))
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// existing is the folder, or the nearest above it that exists.
func existing(dir string) string {
	for missing(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	return dir
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func inBytes(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
