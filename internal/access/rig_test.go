package access

import (
	"log/slog"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/test/journal"
)

func newLog() (*slog.Logger, *journal.Journal) {
	l := &journal.Journal{}
	return l.Logger(), l
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
