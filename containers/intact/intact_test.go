package intact

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// made makes a folder of one file with so many bytes, most of them zero.
func made(t *testing.T, size int64) (dir, path string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "folder")
	err := Make(t.Context(), dir, func(temp string) error { return fill(temp, size) })
	require.NoError(t, err)
	return dir, filepath.Join(dir, "weights")
}

func fill(temp string, size int64) error {
	if err := os.Mkdir(temp, 0o755); err != nil {
		return err
	}
	path := filepath.Join(temp, "weights")
	return errors.Join(os.WriteFile(path, []byte("7.0"), 0o600), os.Truncate(path, size))
}

// flip changes a file, and neither its size nor its time.
func flip(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("9"), 0)
	require.NoError(t, errors.Join(err, f.Close(), os.Chtimes(path, info.ModTime(), info.ModTime())))
}

func check(t *testing.T, dir string, all bool, want ...string) {
	t.Helper()
	c, known, err := Check(t.Context(), dir, all)
	if err != nil || !known || !slices.Equal(c.Files, want) {
		t.Errorf("changed are %v, known %v, %v; want %v", c.Files, known, err, want)
	}
}

func TestASmallFolderIsComparedByDigests(t *testing.T) {
	dir, path := made(t, 3)
	check(t, dir, false)
	flip(t, path)
	check(t, dir, false, "weights")
}

func TestALargeFolderIsComparedByDigestsWhenItIsAskedForAndOnceADay(t *testing.T) {
	dir, path := made(t, SmallBytes+1)
	flip(t, path)
	check(t, dir, false)
	check(t, dir, true, "weights")
	r := read(dir)
	r.Compared = time.Now().Add(-2 * comparedEvery)
	require.NoError(t, r.write(dir))
	check(t, dir, false, "weights")
	repaired, err := Repair(t.Context(), dir, func(temp string) error { return fill(temp, SmallBytes+1) })
	if err != nil || !slices.Equal(repaired, []string{"weights"}) {
		t.Errorf("repaired are %v, %v", repaired, err)
	}
	check(t, dir, true)
	if err := os.Chtimes(path, time.Now(), time.Now()); err != nil { // another time alone is no damage
		t.Fatal(err)
	}
	check(t, dir, false)
	if r := read(dir); r == nil || time.Since(r.Compared) > time.Minute {
		t.Errorf("the record is %+v", r)
	}
	if f := read(dir).Files["weights"]; time.Since(time.Unix(0, f.Time)) > time.Minute {
		t.Error("the record has the old time: each check would read the file")
	}
}

func TestAFolderThatCannotBeMadeLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	broken := errors.New("broken")
	err := Make(t.Context(), dir, func(temp string) error { return errors.Join(fill(temp, 3), broken) })
	if !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) > 0 {
		t.Errorf("there is %v, %v", entries, err)
	}
	if _, known, err := Check(t.Context(), dir, false); known || err != nil {
		t.Errorf("it is known %v, %v", known, err)
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	dir, _ := made(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, _, err := Check(ctx, dir, true); !errors.Is(err, context.Canceled) || len(c.Files) > 0 {
		t.Errorf("changed are %v, %v", c.Files, err)
	}
}
