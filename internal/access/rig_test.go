package access

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access/testca"
)

// logged is a log for the test to read.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func newLog() (*slog.Logger, *logged) {
	l := &logged{}
	return slog.New(slog.NewTextHandler(l, nil)), l
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// age lets the next look at a file be now.
func (f *file[T]) age() { f.looked.Store(-int64(time.Hour)) }

// folder holds the files of a test.
type folder struct {
	testing.TB
	dir string
}

func newFolder(t testing.TB) folder { return folder{t, t.TempDir()} }

func (f folder) write(name, content string) string {
	f.Helper()
	return testca.Write(f, f.dir, name, []byte(content))
}
