//go:build unix

package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestSweepTakesWhatIsOldAndFree(t *testing.T) {
	work := t.TempDir()
	age := func(kind, name string, age time.Duration) string {
		dir := filepath.Join(work, kind, name)
		if err := os.MkdirAll(filepath.Join(dir, "inside"), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := openLock(dir + lockEnding)
		if err != nil {
			t.Fatal(err)
		}
		defer l.close()
		then := time.Now().Add(-age)
		if err := os.Chtimes(l.path, then, then); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	old, young := age("bundles", "old", 31*24*time.Hour), age("environments", "young", time.Hour)
	house := age("wheelhouses", "house", 365*24*time.Hour)
	used := age("environments", "used", 31*24*time.Hour)
	l, err := openLock(used + lockEnding)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.take(t.Context(), syscall.LOCK_SH, func() {}); err != nil {
		t.Fatal(err)
	}
	for _, half := range []string{old + tempEnding, old + ".old"} { // of processes that were killed
		if err := os.Mkdir(half, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := Sweep(work, DefaultKeep)
	if err != nil || len(removed) != 1 || removed[0] != old {
		t.Errorf("removed %v, %v", removed, err)
	}
	for _, path := range []string{young, house, used} {
		if !isFolder(path) {
			t.Errorf("%s is gone", path)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(work, "bundles")); err != nil || len(entries) != 0 {
		t.Errorf("there is %v, %v", entries, err)
	}
	if removed, err := Sweep(filepath.Join(work, "nothing"), 0); err != nil || removed != nil {
		t.Errorf("of nothing it removed %v, %v", removed, err)
	}
}

func TestALockThatWasSweptIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+lockEnding)
	waiting, err := openLock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.close()
	if err := os.Remove(path); err != nil { // a sweep
		t.Fatal(err)
	}
	if err := waiting.alone(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	other, err := openLock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if free, err := other.try(syscall.LOCK_SH); free || err != nil {
		t.Errorf("two hold the lock: %v", err)
	}
}

func TestRemoveWholeOfNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if err := removeWhole(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + ".old"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
