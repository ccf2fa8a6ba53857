package filestore

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// full is a file with some of everything, what its values are, and what they were before the
// last write.
type full struct {
	data         []byte
	last, before map[string]string
}

func fill(t testing.TB) full {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	for i := range 20 {
		name := fmt.Sprint("a", i)
		apply(t, s, signed(catalog.PutApp{App: app(name)}))
		apply(t, s, signed(catalog.PutVersion{Version: version(name, "1")}))
		apply(t, s, signed(catalog.AddKey{Key: key(name)}))
		state := serving.StateKey{App: name, Kind: "exp3", User: fmt.Sprint(i)}
		swap(t, s, state, 0, strings.Repeat("x", 300))
		if revision := swap(t, s, keyOf(name), 0, "bad"); i%5 == 0 {
			if _, err := s.SetStateAside(t.Context(), keyOf(name), revision, "why"); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.AddUsage(t.Context(), serving.UsageReport{
			Writer: name, Number: 1, Revision: s.Catalog().Revision, Counted: []serving.Usage{{Key: serving.UsageKey{App: name}, Answers: 7, Least: 1, Most: time.Second}},
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.LeaseQueryIDs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f := full{before: values(t, s)}
	apply(t, s, signed(catalog.RevokeKey{ID: key("a3").ID}))
	f.last = values(t, s)
	closeStore(t, s)
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	require.NoError(t, err)
	f.data = data
	return f
}

// values are all in the file but for totals, by path and key.
func values(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	var walk func(b *bucket)
	walk = func(b *bucket) {
		_ = b.raw.ForEach(func(k, v []byte) error {
			if v == nil {
				walk(b.bucket(string(k)))
			} else if name := string(k); !strings.HasPrefix(name, totalOf) && name != formatNumber {
				all[b.path+"/"+string(k)] = string(b.get(k))
			}
			return nil
		})
	}
	err := s.view(func(in *tx) error {
		return in.ForEach(func(name []byte, _ *bbolt.Bucket) error { walk(in.bucket(string(name))); return nil })
	})
	require.NoError(t, err)
	return all
}

// try opens a damaged copy: it is refused in words, or holds all that was in it, or says that
// it does not. What is left works on, and is good from then on.
func (f full) try(t testing.TB, data []byte) (outcome string) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, FileName)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	found, checkErr := Check(path)
	s, err := Open(dir, quiet())
	if (err == nil) != (checkErr == nil) {
		t.Fatalf("the check says %v, and to open it says %v", checkErr, err)
	}
	if err != nil {
		refuse(t, dir, path+" is ")
		return "refused"
	}
	got := values(t, s)
	if said := s.Condition() != nil; said != (len(found) > 0) {
		t.Fatalf("condition %v, and the check found %v", s.Condition(), found)
	} else if !said && !maps.Equal(got, f.last) {
		t.Fatalf("lost without a word: %v", differing(got, f.last))
	}
	for name, value := range got {
		if value != f.last[name] && value != f.before[name] && !strings.HasPrefix(name, damagedBucket+"/") && !strings.HasPrefix(name, learnedBucket) {
			t.Fatalf("%s is %q, which it never was", name, value)
		}
	}
	apply(t, s, signed(catalog.PutApp{App: app("after")}))
	swap(t, s, keyOf("after"), 0, "1")
	want := values(t, s)
	closeStore(t, s)
	again := open(t, dir)
	if got := values(t, again); !maps.Equal(got, want) || again.Condition() != nil {
		t.Fatalf("the second time: %v, %v", differing(got, want), again.Condition())
	}
	closeStore(t, again)
	if len(found) > 0 {
		return "said"
	}
	return "whole"
}

func differing(got, want map[string]string) (names []string) {
	for name := range want {
		if got[name] != want[name] {
			names = append(names, name)
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestDamageIsNeverSilent flips single bits, and does worse.
func TestDamageIsNeverSilent(t *testing.T) {
	f, random := fill(t), rand.New(rand.NewPCG(7, 8))
	came := map[string]int{}
	for range 100 {
		data := slices.Clone(f.data)
		data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		came[f.try(t, data)]++
		came[f.try(t, damage(random, f.data))]++
	}
	t.Log(came)
	if len(came) != 3 {
		t.Errorf("%v: the damage shows too little", came)
	}
}

// TestTornMetaIsSaid breaks the newer meta page: a key that was revoked comes back, and that
// is said.
func TestTornMetaIsSaid(t *testing.T) {
	f := fill(t)
	came := map[bool]int{}
	for page := range 2 {
		data := slices.Clone(f.data)
		data[page*os.Getpagesize()+45] ^= 4
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, FileName), data, 0o600))
		s := open(t, dir)
		if err := s.Condition(); err == nil || !strings.Contains(err.Error(), "may be undone (a key that was revoked may be valid again)") {
			t.Errorf("condition %v", err)
		}
		came[s.Catalog().Keys[key("a3").ID] != nil]++
	}
	if came[true] != 1 || came[false] != 1 {
		t.Errorf("the key is there: %v", came)
	}
}

// TestAStateThatIsDamagedWhileItServes reads a value that changes under the store.
func TestAStateThatIsDamagedWhileItServes(t *testing.T) {
	s := open(t, t.TempDir())
	swap(t, s, keyOf("u"), 0, "1")
	rewrite(t, s, func(in *tx) error {
		l, _ := openLearned(in)
		name := []byte(keyOf("u").String())
		broken := slices.Clone(l.states.raw.Get(name))
		broken[16] ^= 1
		return l.states.raw.Put(name, broken)
	})
	wantState(t, s, keyOf("u"), "", 0)
	if err := s.Condition(); err == nil || !strings.Contains(err.Error(), `in "selection/states"`) {
		t.Errorf("condition %v", err)
	}
	wantState(t, s, keyOf("u"), "2", swap(t, s, keyOf("u"), 0, "2"))
}

// TestAMissingFileIsNoFirstStart removes or empties the file beside what was made with it.
func TestAMissingFileIsNoFirstStart(t *testing.T) {
	for _, lose := range []func(path string) error{os.Remove, func(path string) error { return os.Truncate(path, 0) }} {
		dir := t.TempDir()
		closeStore(t, open(t, dir))
		require.NoError(t, errors.Join(lose(filepath.Join(dir, FileName)), os.MkdirAll(filepath.Join(dir, "bundles", "x"), 0o700)))
		refuse(t, dir, "is missing or empty", "not a first start", "topsail restore")
	}
}

// TestRecover goes on from the newest good copy.
func TestRecover(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	s := open(t, dir)
	apply(t, s, signed(catalog.PutApp{App: app("a")}))
	block, err := s.LeaseQueryIDs(t.Context())
	require.NoError(t, err)
	require.NoError(t, errors.Join(s.keepCopy(), s.keepCopy()))
	apply(t, s, signed(catalog.PutApp{App: app("b")}))
	require.NoError(t, s.keepCopy())
	if err := Recover(t.Context(), dir, quiet()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("recovered what is in use: %v", err)
	}
	apply(t, s, signed(catalog.PutApp{App: app("c")}))
	closeStore(t, s)
	if err := Recover(t.Context(), dir, quiet()); err == nil || !strings.Contains(err.Error(), "start without --recover") {
		t.Errorf("recovered what is good: %v", err)
	}
	copies := Copies(dir)
	if len(copies) != 2 {
		t.Fatalf("%d copies", len(copies))
	}
	spoil(t, path)
	spoil(t, copies[0].Path)
	refuse(t, dir, "is damaged", "start with --recover to go on from the copy of "+copies[0].At.Format(time.RFC3339))
	inTheWay := path + ".recovered"
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Recover(t.Context(), dir, quiet()); err == nil {
		t.Error("recovered without a file that it could write")
	}
	if aside, _ := filepath.Glob(path + ".damaged-*"); len(aside) != 0 {
		t.Errorf("set aside, with nothing in its place: %v", aside)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := Recover(t.Context(), dir, quiet()); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if cat := s.Catalog(); cat.Apps["a"] == nil || cat.Apps["b"] != nil {
		t.Errorf("got %s", text(t, cat))
	}
	if next, err := s.LeaseQueryIDs(t.Context()); next < block+leap || err != nil {
		t.Errorf("block %d and error %v after %d", next, err, block)
	}
	wantLog(t, s, "recover backup "+filepath.Base(copies[1].Path)+" by local", "create app a by anna")
	if aside, _ := filepath.Glob(path + ".damaged-*"); len(aside) != 1 {
		t.Errorf("set aside: %v", aside)
	}
	closeStore(t, s)
	spoil(t, path)
	spoil(t, copies[1].Path)
	if err := Recover(t.Context(), dir, quiet()); err == nil || !strings.Contains(err.Error(), "there is no good copy") {
		t.Errorf("recovered from nothing good: %v", err)
	}
}

// spoil overwrites the second half of a file.
func spoil(t testing.TB, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		clear(data[len(data)/4:])
		err = os.WriteFile(path, data, 0o600)
	}
	require.NoError(t, err)
}
