package filestore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// TestCopiesAreBounded makes more copies than are kept.
func TestCopiesAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for i := range keptCopies + 3 {
		apply(t, s, catalog.PutApp{App: app(fmt.Sprint("a", i))})
		require.NoError(t, s.keepCopy())
	}
	if copies := Copies(dir); len(copies) != keptCopies {
		t.Errorf("%d copies, want %d", len(copies), keptCopies)
	}
}

// TestACopyEachDay has days pass: one copy at the start, and one each day on which something has
// changed, until the context ends.
func TestACopyEachDay(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir, quiet())
		require.NoError(t, err)
		defer closeStore(t, s)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.KeepCopies(ctx) }()
		begun := time.Now()
		for day, want := range []struct {
			change bool
			copies int
		}{{false, 1}, {true, 2}, {false, 2}, {true, 3}} {
			if want.change {
				apply(t, s, catalog.PutApp{App: app(fmt.Sprint("a", day))})
			}
			if day > 0 {
				time.Sleep(copyEvery)
			}
			synctest.Wait()
			copies := Copies(dir)
			if len(copies) != want.copies || want.change && !copies[0].At.Equal(begun.Add(time.Duration(day)*copyEvery)) {
				t.Errorf("day %d: %v", day, copies)
			}
		}
		stop()
		<-ended
	})
}

// TestCopiesAreBoundedInBytes has old copies that are large: the oldest go.
func TestCopiesAreBoundedInBytes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	large := []string{
		made(t, dir, "20200101T000000.000Z-t1.db", keptBytes/2), made(t, dir, "20200102T000000.000Z-t2.db", keptBytes/2), made(t, dir, "20200103T000000.000Z-t3.db", keptBytes/3),
	}
	broken := made(t, dir, "20200103T000000.000Z-t4.db.part", 1)
	require.NoError(t, s.keepCopy())
	if copies := Copies(dir); len(copies) != 3 || copies[1].Path != large[2] || copies[2].Path != large[1] {
		t.Errorf("copies %v", copies)
	}
	if _, err := os.Stat(broken); err == nil {
		t.Error("what broke off is kept")
	}
	// The newest stays, however large it is.
	newest := made(t, dir, "20990101T000000.000Z-t9.db", 2*keptBytes)
	require.NoError(t, forgetCopies(dir))
	if copies := Copies(dir); copies[0].Path != newest {
		t.Errorf("copies %v", copies)
	}
}

// made makes a file of so many bytes, which take no room, among the copies.
func made(t *testing.T, dir, ending string, size int64) string {
	t.Helper()
	path := filepath.Join(dir, copiesFolder, "topsail-"+ending)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, size))
	return path
}

// TestALossDisplacesNoGoodCopy damages what is set aside at a start, and goes on for longer than
// copies are kept: the last copy from before the damage is still there.
func TestALossDisplacesNoGoodCopy(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"a value": func(t *testing.T, path string) { replace(t, path, `learned much`, `learned mucj`) },
		"a page":  tear,
	} {
		dir := t.TempDir()
		s := open(t, dir)
		swap(t, s, keyOf("u"), 0, "learned much")
		require.NoError(t, s.keepCopy())
		good := Copies(dir)[0].Path
		closeStore(t, s)
		damage(t, filepath.Join(dir, FileName))
		for i := range keptCopies + 3 { // the loss is of the first start
			s = open(t, dir)
			if s.Damaged() != (i == 0) {
				t.Errorf("%s: start %d: %v", name, i, s.Condition())
			}
			apply(t, s, catalog.PutApp{App: app(fmt.Sprint("a", i))})
			require.NoError(t, s.keepCopy())
			closeStore(t, s)
		}
		copies := Copies(dir)
		if len(copies) != keptCopies+1 || copies[keptCopies].Path != good || !strings.HasSuffix(copies[0].Path, partial) {
			t.Errorf("%s: copies %v", name, copies)
		}
		if found, err := Check(good); err != nil || len(found) > 0 {
			t.Errorf("%s: the copy is %v, %v", name, found, err)
		}
	}
}

// TestACopyThatIsDamagedIsMadeAgain spoils the copy of what is still the state.
func TestACopyThatIsDamagedIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	apply(t, s, catalog.PutApp{App: app("a")})
	require.NoError(t, s.keepCopy())
	spoil(t, Copies(dir)[0].Path)
	require.NoError(t, s.keepCopy())
	if copies := Copies(dir); len(copies) != 2 || !isGood(copies[0].Path) {
		t.Errorf("copies %v", copies)
	}
}

// replace changes a text wherever it is in a file, to one of the same length.
func replace(t *testing.T, path, from, to string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), from) {
		t.Fatalf("%q is not in %s: %v", from, path, err)
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(data), from, to)), 0o600))
}

// tear breaks one of the two first pages.
func tear(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		data[45] ^= 4
		err = os.WriteFile(path, data, 0o600)
	}
	require.NoError(t, err)
}
