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

	"github.com/topsail-serving/topsail/test/require"
)

func TestSweepTakesWhatIsOldAndFree(t *testing.T) {
	work := t.TempDir()
	age := func(kind, name string, age time.Duration) string {
		dir := filepath.Join(work, kind, name)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "inside"), 0o755))
		l, err := openLock(dir + lockEnding)
		require.NoError(t, err)
		defer l.close()
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(l.path, then, then))
		return dir
	}
	old, young := age("bundles", "old", 31*24*time.Hour), age("environments", "young", time.Hour)
	house := age("wheelhouses", "house", 365*24*time.Hour)
	used := age("environments", "used", 31*24*time.Hour)
	l, err := openLock(used + lockEnding)
	require.NoError(t, err)
	defer l.close()
	require.NoError(t, l.take(t.Context(), syscall.LOCK_SH, func() {}))
	for _, half := range []string{old + tempEnding, old + ".old"} { // of processes that were killed
		require.NoError(t, os.Mkdir(half, 0o755))
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
	require.NoError(t, err)
	defer waiting.close()
	if err := os.Remove(path); err != nil { // a sweep
		t.Fatal(err)
	}
	require.NoError(t, waiting.alone(t.Context(), func() {}))
	other, err := openLock(path)
	require.NoError(t, err)
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
