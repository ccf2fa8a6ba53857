package redisstore

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// example is a snapshot with some of everything.
func example(t testing.TB) *snapshot {
	t.Helper()
	v := version("m", "1")
	v.Container.Env = map[string]string{"K": "v\n"}
	cat, _, err := catalog.Merge(&serving.Catalog{}, []serving.App{app("a", "m"), app("b")}, []serving.Version{v, version("m", "2")}, nil)
	require.NoError(t, err)
	hash := sha256.Sum256(nil)
	cat, err = catalog.Apply(cat, catalog.AddKey{Key: serving.Key{ID: "aaaaaaaaaa", Name: "ci", Role: serving.RoleViewer, Hash: hash[:]}}, 0)
	require.NoError(t, err)
	cat.Revision = 12
	return newSnapshot(cat, position{"epoch", 12, "write"}, epochHistory{"older": {To: "epoch", UpTo: 7}, "other": {To: "epoch"}})
}

func encodeExample(t testing.TB) []byte {
	t.Helper()
	data, err := encodeFile(example(t))
	require.NoError(t, err)
	return data
}

func sameSnapshot(t testing.TB, a, b *snapshot) bool {
	t.Helper()
	return encode(t, a.catalog) == encode(t, b.catalog) && a.at == b.at && reflect.DeepEqual(a.epochHistory, b.epochHistory)
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	saved := example(t)
	for range 2 {
		require.NoError(t, saveFile(path, saved))
		got, err := loadFile(path, slog.New(slog.DiscardHandler))
		if err != nil || !sameSnapshot(t, got, saved) {
			t.Fatalf("got %+v and error %v", got, err)
		}
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Fatalf("left %v, error %v", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

// TestDamagedFile damages the file in every place: it is set aside, and never read
// as something else.
func TestDamagedFile(t *testing.T) {
	data := encodeExample(t)
	for i := range data {
		changed := append([]byte(nil), data...)
		changed[i] ^= 0x15
		if snap, err := decodeFile(changed); err == nil && !sameSnapshot(t, snap, example(t)) {
			t.Fatalf("read a file with another byte %d", i)
		}
		if snap, err := decodeFile(data[:i]); err == nil {
			t.Fatalf("read %d bytes of %d: %+v", i, len(data), snap)
		}
	}
	newer := strings.Replace(string(data), "topsail-snapshot 1 ", "topsail-snapshot 2 ", 1)
	if _, err := decodeFile([]byte(newer)); err == nil || !strings.Contains(err.Error(), "its format is 2, and this topsail knows up to 1") {
		t.Errorf("a newer file: %v", err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// FuzzDecodeFile gives any bytes: what is read as a snapshot is one, and is written
// and read again as the same. The bytes come with and without a header that fits.
func FuzzDecodeFile(f *testing.F) {
	data := encodeExample(f)
	_, body, _ := strings.Cut(string(data), "\n")
	f.Add(data, false)
	f.Add([]byte(body), true)
	f.Add([]byte(`{"epoch":"e","documents":[{"kind":"apps","key":"","json":null}]}`), true)
	f.Fuzz(func(t *testing.T, data []byte, header bool) {
		if header {
			data = append(fmt.Appendf(nil, fileHeader, fileFormat, checksum(data), len(data)), data...)
		}
		snap, err := decodeFile(data)
		if err != nil {
			return
		}
		again, err := encodeFile(snap)
		if err != nil {
			return // an object without an input type reads, and does not write
		}
		if got, err := decodeFile(again); err != nil || encode(t, got.catalog) != encode(t, snap.catalog) || got.at != snap.at {
			t.Fatalf("got %+v and error %v, want %+v", got, err, snap)
		}
	})
}

// BenchmarkSaveFile saves a thousand objects.
func BenchmarkSaveFile(b *testing.B) {
	var apps []serving.App
	for i := range 1000 {
		apps = append(apps, app(fmt.Sprint("app-", i)))
	}
	cat, _, err := catalog.Merge(&serving.Catalog{}, apps, nil, nil)
	require.NoError(b, err)
	snap, path := newSnapshot(cat, newEpoch(1), nil), filepath.Join(b.TempDir(), "snapshot")
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, saveFile(path, snap))
	}
}
