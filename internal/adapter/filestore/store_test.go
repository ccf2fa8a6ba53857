package filestore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, quiet())
	require.NoError(t, err)
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	require.NoError(t, s.Close())
}

func apply(t testing.TB, s *Store, change catalog.Change) *serving.Catalog {
	t.Helper()
	cat, err := s.Apply(t.Context(), change, 0)
	if err != nil {
		t.Fatalf("%#v: %v", change, err)
	}
	return cat
}

func app(name string, models ...string) serving.App {
	return serving.App{Name: name, InputType: serving.Doubles, SLO: serving.Duration(time.Second), Models: models}
}

func version(model, name string) serving.Version {
	return serving.Version{ModelID: serving.ModelID{Model: model, Version: name}, InputType: serving.Doubles}
}

// key has a hash by its name.
func key(name string) serving.Key {
	hash := sha256.Sum256([]byte(name))
	return serving.Key{ID: hex.EncodeToString(hash[:5]), Name: name, Role: serving.RoleViewer, Hash: hash[:]}
}

// refuse opens dir, which must fail with all the words.
func refuse(t testing.TB, dir string, words ...string) {
	t.Helper()
	s, err := Open(dir, quiet())
	if err == nil {
		closeStore(t, s)
		t.Fatalf("opened; want an error with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	open(t, dir)
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, FileName): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v and error %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestInUse(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	refuse(t, dir, "data directory "+dir+" is in use by another topsail; stop it or choose another --data-dir")
	closeStore(t, s)
	open(t, dir)
}

func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	refuse(t, file, file, "not a directory")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, FileName), 0o700))
	refuse(t, dir, filepath.Join(dir, FileName), "aside and start again")
}

func TestClosed(t *testing.T) {
	s := open(t, t.TempDir())
	want := apply(t, s, catalog.PutApp{App: app("a")})
	closeStore(t, s)
	if cat, err := s.Apply(t.Context(), catalog.DeleteApp{Name: "a"}, 0); err == nil || cat != nil {
		t.Errorf("got %v and error %v", cat, err)
	}
	if block, err := s.LeaseQueryIDs(t.Context()); err == nil || block != 0 {
		t.Errorf("got block %d and error %v", block, err)
	}
	if s.Catalog() != want {
		t.Errorf("got %v, want the last snapshot", s.Catalog())
	}
}

func TestWaitToWrite(t *testing.T) {
	s := open(t, t.TempDir())
	require.NoError(t, s.lock(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if cat, err := s.Apply(ctx, catalog.PutApp{App: app("a")}, 0); !errors.Is(err, context.DeadlineExceeded) || cat != nil {
		t.Errorf("got %v and error %v while another one writes", cat, err)
	}
	s.unlock()
	apply(t, s, catalog.PutApp{App: app("a")})
}

// TestFormats writes what newer releases may leave behind.
func TestFormats(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	want := apply(t, s, catalog.PutApp{App: app("a")})
	rewrite(t, s, func(in *tx) error {
		if _, err := in.make("new_bucket"); err != nil {
			return err
		}
		b := in.bucket(catalog.Apps)
		return b.put([]byte("a"), []byte(strings.Replace(string(b.get([]byte("a"))), "{", `{"new_field":[{}],`, 1)))
	})
	closeStore(t, s)
	s = open(t, dir)
	if !reflect.DeepEqual(s.Catalog(), want) || s.Condition() != nil {
		t.Errorf("got %+v and %v, want %+v", s.Catalog(), s.Condition(), want)
	}
}

// A file of another format is refused, and not recovered from a copy, which would lose what is in it.
func TestOtherFormats(t *testing.T) {
	for _, other := range []uint64{format - 1, format + 1} {
		dir := t.TempDir()
		s := open(t, dir)
		require.NoError(t, s.keepCopy())
		rewrite(t, s, func(in *tx) error {
			return in.Bucket([]byte(metaBucket)).Put([]byte(formatNumber), binary.BigEndian.AppendUint64(nil, other))
		})
		closeStore(t, s)
		refuse(t, dir, filepath.Join(dir, FileName)+" is written by another release of topsail", fmt.Sprint("format is ", other), "reads 2", "--data-dir")
		if err := Recover(t.Context(), dir, quiet()); err == nil || !strings.Contains(err.Error(), "another release") {
			t.Errorf("recovered from format %d: %v", other, err)
		}
	}
}

func rewrite(t testing.TB, s *Store, change func(in *tx) error) {
	t.Helper()
	require.NoError(t, s.update(change))
}

// TestBehindTheFile stands for a commit that failed after it was complete: the
// file is ahead of memory, and to write on would mix the two.
func TestBehindTheFile(t *testing.T) {
	s := open(t, t.TempDir())
	want := apply(t, s, catalog.PutApp{App: app("a")})
	rewrite(t, s, func(in *tx) error { return in.putNumber(revisionNumber, 2) })
	cat, err := s.Apply(t.Context(), catalog.PutApp{App: app("b")}, 0)
	if err == nil || !strings.Contains(err.Error(), "restart topsail") || cat != nil || s.Catalog() != want {
		t.Errorf("got %v and error %v", cat, err)
	}
}

func TestLease(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for want := uint32(1); want < 10; want++ {
		if want%3 == 0 {
			closeStore(t, s)
			s = open(t, dir)
		}
		if got, err := s.LeaseQueryIDs(t.Context()); got != want || err != nil {
			t.Fatalf("got block %d and error %v, want %d", got, err, want)
		}
	}
	if s.Catalog().Revision != 0 {
		t.Errorf("leases have changed the catalog")
	}
	rewrite(t, s, func(in *tx) error { return in.putNumber(leaseNumber, 1<<32-2) })
	if got, err := s.LeaseQueryIDs(t.Context()); got != 1<<32-1 || err != nil {
		t.Errorf("got block %d and error %v", got, err)
	}
	if got, err := s.LeaseQueryIDs(t.Context()); err == nil || got != 0 {
		t.Errorf("got block %d and error %v after the last", got, err)
	}
}

func BenchmarkCatalog(b *testing.B) {
	s := open(b, b.TempDir())
	b.ReportAllocs()
	for b.Loop() {
		if s.Catalog() == nil {
			b.Fatal("no catalog")
		}
	}
}

// BenchmarkApply makes one durable change among a thousand objects.
func BenchmarkApply(b *testing.B) {
	s := open(b, b.TempDir())
	var apps []serving.App
	for i := range 1000 {
		apps = append(apps, app(fmt.Sprintf("app-%d", i)))
	}
	if _, err := s.MergeFile(b.Context(), apps, nil, nil); err != nil {
		b.Fatal(err)
	}
	changed := app("b")
	b.ReportAllocs()
	for b.Loop() {
		changed.SLO += serving.Duration(time.Microsecond)
		if _, err := s.Apply(b.Context(), catalog.PutApp{App: changed}, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// drop removes a bucket as if it had never been there.
func (t *tx) drop(name string) error {
	meta := t.bucket(metaBucket)
	for _, path := range []string{name, name + "/" + countsBucket, name + "/" + writersBucket} {
		if err := meta.delete([]byte(totalOf + path)); err != nil {
			return err
		}
	}
	return t.DeleteBucket([]byte(name))
}
