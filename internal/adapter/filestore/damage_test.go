package filestore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// used is a file with a past, and the two catalogs it may come back with: the
// last one, and the one before the last write.
type used struct {
	data     []byte
	catalogs []string
}

func use(t testing.TB) used {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	var apps []serving.App
	var versions []serving.Version
	for i := range 40 {
		model := fmt.Sprintf("model-%d", i)
		apps = append(apps, app(fmt.Sprintf("app-%d", i)))
		versions = append(versions, version(model, "1"))
	}
	if _, err := s.MergeFile(t.Context(), apps, versions, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		apply(t, s, catalog.AddKey{Key: key(fmt.Sprintf("key-%d", i))})
	}
	for i := range 10 {
		apply(t, s, catalog.DeleteVersion{ID: version(fmt.Sprintf("model-%d", 4*i), "1").ModelID})
	}
	before := text(t, s.Catalog())
	last := text(t, apply(t, s, catalog.PutApp{App: app("last")}))
	closeStore(t, s)
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	require.NoError(t, err)
	return used{data, []string{before, last}}
}

func text(t testing.TB, cat *serving.Catalog) string {
	t.Helper()
	b, err := json.Marshal(cat)
	require.NoError(t, err)
	return string(b)
}

// try opens a damaged copy: it has to come back with one of the catalogs and work
// on, or to be refused in words. It returns the catalog, or "".
func (u used) try(t testing.TB, data []byte) string {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	require.NoError(t, err)
	path := filepath.Join(dir, FileName)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	s, err := Open(dir, quiet())
	if err != nil {
		refuse(t, dir, path+" is ") // damaged, or newer where the damage is in the format
		return ""
	}
	got := text(t, s.Catalog())
	if !slices.Contains(u.catalogs, got) {
		t.Fatalf("opened with a catalog that never was: %s", got)
	}
	want := text(t, apply(t, s, catalog.PutApp{App: app("after")}))
	closeStore(t, s)
	s = open(t, dir)
	if now := text(t, s.Catalog()); now != want {
		t.Fatalf("after a write to the damaged file: %s, want %s", now, want)
	}
	closeStore(t, s)
	return got
}

// TestTornMeta damages the two meta pages in turn: the file comes back with the
// state of the other one.
func TestTornMeta(t *testing.T) {
	u := use(t)
	var got []string
	for page := range 2 {
		data := slices.Clone(u.data)
		meta := data[page*os.Getpagesize():]
		clear(meta[40:60])
		got = append(got, u.try(t, data))
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(u.catalogs))
	if !slices.Equal(got, want) {
		t.Errorf("came back with\n%q\nwant\n%q", got, want)
	}
	data := slices.Clone(u.data)
	clear(data[:2*os.Getpagesize()])
	if u.try(t, data) != "" {
		t.Error("opened without a meta page")
	}
}

func TestTruncated(t *testing.T) {
	u := use(t)
	for size := 1; size < len(u.data); size += 1997 {
		u.try(t, u.data[:size])
	}
	if u.try(t, append(slices.Clone(u.data), 1, 2, 3)) != u.catalogs[1] {
		t.Error("a longer file was not as good")
	}
}

func TestDamagedText(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	data := use(t).data
	require.NoError(t, os.WriteFile(path, data[:len(data)/2], 0o600))
	refuse(t, dir, path+" is damaged (it is cut short: ", " aside and start again", "configuration file", "API")
}

// TestDamagedKeys changes what keys may do: no such file is opened.
func TestDamagedKeys(t *testing.T) {
	dir := t.TempDir()
	data := bytes.ReplaceAll(use(t).data, []byte(`"role":"viewer"`), []byte(`"role":"deploy"`))
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileName), data, 0o600))
	refuse(t, dir, `the checksum of bucket "keys" does not match`)
}

func TestGarbage(t *testing.T) {
	u := use(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 100, 4096, 8192, 100_000} {
		data := make([]byte, size)
		if u.try(t, data) != "" {
			t.Error("opened a file of zeros")
		}
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		if u.try(t, data) != "" {
			t.Error("opened a file of noise")
		}
	}
}

// TestDamage damages the file at random. The seed is fixed: a failure stays one.
func TestDamage(t *testing.T) {
	u, random := use(t), rand.New(rand.NewPCG(5, 6))
	came := map[string]int{}
	for range 150 {
		came[u.try(t, damage(random, u.data))]++
	}
	if len(came) != 3 || came[""] < 8 || came[u.catalogs[1]] < 8 {
		t.Errorf("refused %d, came back with the last state %d times; the damage shows too little", came[""], came[u.catalogs[1]])
	}
}

// damage returns a copy of data with a few small faults or a large one in it.
func damage(random *rand.Rand, data []byte) []byte {
	data = slices.Clone(data)
	page, pages := os.Getpagesize(), len(data)/os.Getpagesize()
	at := func() int { return random.IntN(pages) * page }
	switch random.IntN(5) {
	case 0: // a few bits
		for range 1 + random.IntN(8) {
			data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		}
	case 1: // a few bytes of a page's header or first elements
		start := at()
		for range 1 + random.IntN(4) {
			data[start+random.IntN(128)] = byte(random.Uint32())
		}
	case 2: // a sector that was never written
		start := random.IntN(len(data)/512) * 512
		clear(data[start : start+512])
	case 3: // a page in the place of another
		from, to := at(), at()
		copy(data[to:to+page], data[from:from+page])
	case 4: // a page in the place of another, by its own number
		from, to := at(), at()
		copy(data[to+8:to+page], data[from+8:from+page])
	}
	return data
}

// FuzzDamage writes bytes to places in the file: two bytes of page, two of offset
// and one of value each.
func FuzzDamage(f *testing.F) {
	u := use(f)
	f.Add([]byte{})
	f.Add([]byte{0, 2, 0, 10, 0xff})
	f.Fuzz(func(t *testing.T, edits []byte) {
		data := slices.Clone(u.data)
		for edit := range slices.Chunk(edits, 5) {
			if len(edit) == 5 {
				page, at := binary.BigEndian.Uint16(edit), binary.BigEndian.Uint16(edit[2:])
				data[(int(page)*os.Getpagesize()+int(at))%len(data)] = edit[4]
			}
		}
		u.try(t, data)
	})
}

// FuzzCheckPages gives the check any bytes: it returns.
func FuzzCheckPages(f *testing.F) {
	const pageSize = 1024
	path := filepath.Join(f.TempDir(), FileName)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize})
	require.NoError(f, err)
	require.NoError(f, errors.Join(begin(f, db).Commit(), db.Close()))
	data, err := os.ReadFile(path)
	require.NoError(f, err)
	require.NoError(f, checkPages(data, pageSize))
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := checkPages(data, pageSize); err == nil && len(data) < 4*pageSize {
			t.Errorf("%d bytes passed", len(data))
		}
	})
}
