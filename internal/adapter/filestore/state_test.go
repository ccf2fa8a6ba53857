package filestore

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

func TestStatesContract(t *testing.T) {
	contract.States(t, func(t *testing.T) func() contract.StateStore {
		s := open(t, t.TempDir())
		return func() contract.StateStore { return s }
	})
}

func keyOf(user string) serving.StateKey {
	return serving.StateKey{App: "a", Kind: "exp3", User: user}
}

func swap(t testing.TB, s *Store, key serving.StateKey, revision uint64, text string) uint64 {
	t.Helper()
	next, err := s.SwapState(t.Context(), key, revision, []byte(text))
	require.NoError(t, err)
	return next
}

func wantState(t testing.TB, s *Store, key serving.StateKey, text string, revision uint64) {
	t.Helper()
	got, at, err := s.LoadState(t.Context(), key)
	if err != nil || string(got) != text || at != revision {
		t.Errorf("%v: got %q at %d and error %v, want %q at %d", key, got, at, err, text, revision)
	}
}

// inspect looks at the states in the file.
func inspect(t testing.TB, s *Store, look func(l learned)) {
	t.Helper()
	err := s.view(func(in *tx) error {
		l, there := openLearned(in)
		if !there {
			return errors.New("there are no states")
		}
		look(l)
		return nil
	})
	require.NoError(t, err)
}

// TestStatesLast opens the file again: states are there, revisions go on, and the
// catalog is none the wiser.
func TestStatesLast(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	want := text(t, apply(t, s, catalog.PutApp{App: app("a")}))
	first := swap(t, s, keyOf("u"), 0, "1")
	gone := swap(t, s, keyOf("v"), 0, "1")
	if _, err := s.SetStateAside(t.Context(), keyOf("v"), gone, "why"); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = open(t, dir)
	wantState(t, s, keyOf("u"), "1", first)
	wantState(t, s, keyOf("v"), "", 0)
	if next := swap(t, s, keyOf("v"), 0, "2"); next <= gone {
		t.Errorf("revision %d after %d", next, gone)
	}
	if got := text(t, s.Catalog()); got != want {
		t.Errorf("got catalog %s, want %s", got, want)
	}
}

// TestStatesExpire lets time pass: loads and swaps keep a state.
func TestStatesExpire(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir, quiet())
		require.NoError(t, err)
		defer closeStore(t, s)
		revisions := map[string]uint64{}
		for _, user := range []string{"loaded", "swapped", "unseen", "anew"} {
			revisions[user] = swap(t, s, keyOf(user), 0, "1")
		}
		for range 3 {
			time.Sleep(serving.StateExpiry - seenEvery)
			wantState(t, s, keyOf("loaded"), "1", revisions["loaded"])
			revisions["swapped"] = swap(t, s, keyOf("swapped"), revisions["swapped"], "1")
		}
		wantState(t, s, keyOf("unseen"), "", 0)
		if _, err := s.SetStateAside(t.Context(), keyOf("anew"), revisions["anew"], "why"); !errors.Is(err, serving.ErrStateConflict) {
			t.Errorf("an expired state was set aside, with error %v", err)
		}
		revisions["anew"] = swap(t, s, keyOf("anew"), 0, "2")
		wantState(t, s, keyOf("anew"), "2", revisions["anew"])
		want := []serving.StateKey{keyOf("anew"), keyOf("loaded"), keyOf("swapped")}
		if got, err := s.StatesOf(t.Context(), "a", 10); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v and error %v, want %v", got, err, want)
		}
		inspect(t, s, func(l learned) { wantWhole(t, l, 3) })
	})
}

// wantWhole checks that the states, their sights and the numbers fit.
func wantWhole(t interface{ Errorf(string, ...any) }, l learned, count int) {
	states, seen, size := 0, 0, uint64(0)
	c := l.states.cursor()
	for k, v := c.first(); k != nil; k, v = c.next() {
		states++
		size += weight(string(k), v)
		if sight := seenKey(decodeState(v).seen, string(k)); l.seen.get(sight) == nil {
			t.Errorf("%s has no sight", k)
		}
	}
	c = l.seen.cursor()
	for k, _ := c.first(); k != nil; k, _ = c.next() {
		seen++
	}
	if states != count || seen != count || l.root.number(statesNumber) != uint64(count) || l.root.number(bytesNumber) != size {
		t.Errorf("%d states and %d sights, and numbers %d and %d, want %d and %d", states, seen, l.root.number(statesNumber), l.root.number(bytesNumber), count, size)
	}
}

// begin is a transaction in which the file is laid out.
func begin(t require.T, db *bbolt.DB) *tx {
	raw, err := db.Begin(true)
	require.NoError(t, err)
	in := newTx(raw, func(path string, key []byte) { t.Fatal("damaged", path, key) })
	require.NoError(t, create(in))
	return in
}

// TestRoomForStates compares what is kept with a model of it: within bounds, the ones
// that were seen last.
func TestRoomForStates(t *testing.T) {
	dir := t.TempDir()
	db, err := bbolt.Open(filepath.Join(dir, "rooms.db"), 0o600, &bbolt.Options{NoSync: true})
	require.NoError(t, err)
	defer db.Close()
	rapid.Check(t, func(t *rapid.T) {
		in := begin(t, db)
		defer in.Rollback()
		l, err := makeLearned(in)
		require.NoError(t, err)
		most := bounds{states: 5, bytes: 5 * 200}
		now := time.Unix(1_700_000_000, 0)
		type kept struct {
			name string
			seen time.Time
			size uint64
		}
		var model []kept // by sight
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(1, int64(20*24*time.Hour)).Draw(t, "passed")))
			name := string(rapid.ByteRange('a', 'j').Draw(t, "name"))
			value := make([]byte, rapid.IntRange(0, 300).Draw(t, "size"))
			require.NoError(t, errors.Join(l.put(name, state{uint64(i + 1), now, value}), l.makeRoom(most, now)))
			model = slices.DeleteFunc(model, func(k kept) bool { return k.name == name })
			model = append(model, kept{name, now, uint64(64 + 2 + 16 + len(value))})
			for total := uint64(0); ; total = 0 {
				for _, k := range model {
					total += k.size
				}
				if len(model) <= 5 && total <= most.bytes && now.Sub(model[0].seen) < serving.StateExpiry {
					break
				}
				model = model[1:]
			}
			for _, k := range model {
				if l.live(k.name, now).revision == 0 {
					t.Fatalf("%s is gone", k.name)
				}
			}
			wantWhole(t, l, len(model))
		}
	})
}

func TestAsides(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir, quiet())
		require.NoError(t, err)
		defer closeStore(t, s)
		setAside := func(app string) string {
			t.Helper()
			key := serving.StateKey{App: app}
			as, err := s.SetStateAside(t.Context(), key, swap(t, s, key, 0, "\xff"), "why")
			require.NoError(t, err)
			return as
		}
		const asides = 12 // a restoration sets aside those of all users
		for range asides {
			setAside("a")
		}
		as := setAside("b")
		keep := func(most bounds) {
			t.Helper()
			require.NoError(t, s.learn(t.Context(), func(l learned) error { return l.forgetAsides("a", most, time.Now()) }))
		}
		keep(bounds{keptAsides, keptAsideBytes})
		inspect(t, s, func(l learned) {
			if n := l.aside.raw.Stats().KeyN; n != asides+1 {
				t.Errorf("%d are kept, want %d", n, asides+1)
			}
			_, name, _ := strings.Cut(as, ": selection/aside/")
			value := l.aside.get([]byte(name))
			var got aside
			if value == nil || json.Unmarshal(value[8:], &got) != nil || string(got.Text) != "\xff" || got.Why != "why" || got.Key != `"b" "" "" ""` {
				t.Errorf("%s is %q", as, value)
			}
		})
		size := uint64(0)
		inspect(t, s, func(l learned) { _, value := l.aside.cursor().first(); size = uint64(len(value)) })
		for _, test := range []struct {
			most bounds
			left uint64
		}{{bounds{9, keptAsideBytes}, 9}, {bounds{keptAsides, 5*size + size/2}, 5}, {bounds{keptAsides, 1}, 1}, {bounds{0, 0}, 1}} {
			keep(test.most)
			inspect(t, s, func(l learned) {
				if first, _ := l.aside.cursor().first(); string(first) != asideName("a", asides+1-test.left) || uint64(l.aside.raw.Stats().KeyN) != test.left+1 {
					t.Errorf("%+v: the first is %q", test.most, first)
				}
			})
		}
		time.Sleep(serving.StateExpiry)
		setAside("c")
		inspect(t, s, func(l learned) {
			if n := l.aside.raw.Stats().KeyN; n != 1 {
				t.Errorf("%d are kept, want 1", n)
			}
		})
	})
}

// TestOddStates finds no state in what is none, and goes on.
func TestOddStates(t *testing.T) {
	s := open(t, t.TempDir())
	other := swap(t, s, keyOf("other"), 0, "1")
	for _, value := range []string{"", "short", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00text"} {
		err := s.update(func(in *tx) error {
			l, _ := openLearned(in)
			return errors.Join(l.states.put([]byte(keyOf("u").String()), []byte(value)), l.states.put([]byte(`"a" of another release`), nil), l.seen.put([]byte("odd"), nil))
		})
		require.NoError(t, err)
		wantState(t, s, keyOf("u"), "", 0)
		wantState(t, s, keyOf("u"), "2", swap(t, s, keyOf("u"), 0, "2"))
		wantState(t, s, keyOf("other"), "1", other)
	}
}

func BenchmarkLoadState(b *testing.B) {
	s := open(b, b.TempDir())
	swap(b, s, keyOf("u"), 0, strings.Repeat("x", 1000))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.LoadState(b.Context(), keyOf("u")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSwapState(b *testing.B) {
	s := open(b, b.TempDir())
	revision, text := uint64(0), make([]byte, 1000)
	b.ReportAllocs()
	for b.Loop() {
		next, err := s.SwapState(b.Context(), keyOf("u"), revision, text)
		require.NoError(b, err)
		revision = next
	}
}
