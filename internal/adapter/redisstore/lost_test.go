package redisstore

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

// data is everything under the prefix of a test: to take it away, and to put back
// what it was.
type data struct {
	testing.TB
	client *redis.Client
	prefix string
}

func dataOf(t testing.TB, cfg Config) data {
	return data{t, client(t, shared.start(t)), cfg.Prefix}
}

func (d data) keys() []string {
	d.Helper()
	keys, err := d.client.Keys(d.Context(), "{"+d.prefix+"}:*").Result()
	require.NoError(d, err)
	return keys
}

func (d data) dump() map[string]string {
	d.Helper()
	dump := map[string]string{}
	for _, key := range d.keys() {
		value, err := d.client.Dump(d.Context(), key).Result()
		require.NoError(d, err)
		dump[key] = value
	}
	return dump
}

// restore makes what there is what it was, all at once.
func (d data) restore(dump map[string]string) {
	d.Helper()
	_, err := d.client.TxPipelined(d.Context(), func(p redis.Pipeliner) error {
		for _, key := range d.keys() {
			p.Del(d.Context(), key)
		}
		for key, value := range dump {
			p.Restore(d.Context(), key, 0, value)
		}
		return nil
	})
	require.NoError(d, err)
}

func (d data) flush() { d.restore(nil) }

// wantLost says that a Store keeps its catalog, has the alarm, and writes nothing.
func wantLost(t testing.TB, s *Store, want *serving.Catalog, words string) {
	t.Helper()
	cat, err := s.Apply(t.Context(), putApp("refused"), 0)
	if !errors.Is(err, ErrLost) || cat != nil || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v and error %v", cat, err)
	}
	alarm := s.State().Alarm
	for _, part := range []string{words, "run `topsail restore` to write revision", "`topsail restore --accept`"} {
		if !strings.Contains(alarm, part) {
			t.Errorf("alarm %q lacks %q", alarm, part)
		}
	}
	if s.Catalog() != want {
		t.Errorf("the catalog is %s, want that of revision %d", encode(t, s.Catalog()), want.Revision)
	}
}

// wantWorks says that a Store comes to have a catalog as good as want, without an
// alarm, and writes.
func wantWorks(t testing.TB, s *Store, want *serving.Catalog) {
	t.Helper()
	awaitCatalog(t, s, want)
	awaitAlarm(t, s, "")
	if cat := apply(t, s, putApp("works")); cat.Revision != want.Revision+1 || cat.Apps["works"] == nil {
		t.Errorf("got %s", encode(t, cat))
	}
}

// resolve is Restore or Accept, which has to leave a catalog with these apps.
func resolve(t testing.TB, resolve func(context.Context) (*serving.Catalog, error), revision uint64, apps ...string) *serving.Catalog {
	t.Helper()
	cat, err := resolve(t.Context())
	require.NoError(t, err)
	if got := slices.Sorted(maps.Keys(cat.Apps)); cat.Revision != revision || !slices.Equal(got, apps) {
		t.Fatalf("got revision %d with apps %q, want %d with %q", cat.Revision, got, revision, apps)
	}
	return cat
}

// flushed is two Stores that know revision 2 with apps a and b, which is gone.
func flushed(t *testing.T) (d data, before map[string]string, a, b *Store) {
	t.Helper()
	cfg := config(t)
	d = dataOf(t, cfg)
	a, b = follower(t, cfg), follower(t, cfg)
	apply(t, a, putApp("a"))
	want := apply(t, a, putApp("b"))
	awaitCatalog(t, b, want)
	known := b.Catalog()
	before = d.dump()
	d.flush()
	wantLost(t, a, want, "it holds no catalog")
	wantLost(t, b, known, "it holds no catalog")
	return d, before, a, b
}

func TestFlushedAndRestored(t *testing.T) {
	t.Parallel()
	_, _, a, b := flushed(t)
	cat := resolve(t, b.Restore, 3, "a", "b")
	wantWorks(t, a, cat)
	if _, err := a.Restore(t.Context()); !errors.Is(err, ErrNotLost) {
		t.Errorf("restored again: %v", err)
	}
}

func TestFlushedAndAccepted(t *testing.T) {
	t.Parallel()
	_, _, a, b := flushed(t)
	cat := resolve(t, a.Accept, 3)
	wantWorks(t, b, cat)
	if _, err := a.Accept(t.Context()); !errors.Is(err, ErrNotLost) {
		t.Errorf("accepted again: %v", err)
	}
}

func TestFlushedAndPutBack(t *testing.T) {
	t.Parallel()
	d, before, a, b := flushed(t)
	d.restore(before)
	awaitAlarm(t, a, "")
	wantWorks(t, b, a.Catalog())
}

// TestFlushedAndWritten has a process without a past write to the empty Redis.
func TestFlushedAndWritten(t *testing.T) {
	t.Parallel()
	for _, restore := range []bool{true, false} {
		d, _, a, b := flushed(t)
		known := a.Catalog()
		fresh := follower(t, Config{Server: a.cfg.Server, Prefix: d.prefix, Log: b.log})
		for _, name := range []string{"x", "y", "z"} {
			apply(t, fresh, putApp(name))
		}
		wantLost(t, a, known, "it holds another catalog, at revision 3")
		var cat *serving.Catalog
		if restore {
			cat = resolve(t, a.Restore, 4, "a", "b")
		} else {
			cat = resolve(t, a.Accept, 4, "x", "y", "z")
		}
		awaitCatalog(t, b, cat)
		wantWorks(t, fresh, cat)
	}
}

// TestRewound goes back to an old copy, writes on from there, and comes back.
func TestRewound(t *testing.T) {
	t.Parallel()
	var log journal.Journal
	cfg := config(t)
	cfg.Log = log.Logger()
	d := dataOf(t, cfg)
	a, b := follower(t, cfg), follower(t, cfg)
	apply(t, a, putApp("a"))
	old := d.dump()
	apply(t, a, putApp("b"))
	want := apply(t, a, putApp("c"))
	awaitCatalog(t, b, want)
	kept := b.Catalog()
	newest := d.dump()

	d.restore(old)
	wantLost(t, a, want, "it holds revision 1, and held revision 3 before")
	wantLost(t, b, kept, "it holds revision 1, and held revision 3 before")
	d.restore(newest)
	awaitAlarm(t, a, "")
	awaitAlarm(t, b, "")

	d.restore(old)
	wantLost(t, a, want, "it holds revision 1")
	fresh := follower(t, cfg) // it knows nothing of what was
	for _, name := range []string{"x", "y", "z"} {
		apply(t, fresh, putApp(name))
		wantLost(t, a, want, "it holds revision")
	}
	wantLost(t, a, want, "revision 4, which was written after an older one")
	wantLost(t, b, kept, "revision 4, which was written after an older one")
	cat := resolve(t, b.Restore, 5, "a", "b", "c")
	awaitCatalog(t, a, cat)
	wantWorks(t, fresh, cat)
	if got := log.Count("is not used"); got != 4 {
		t.Errorf("said %d times, want once for each of 2 losses at each of 2 processes", got)
	}
}

// TestRestoreOfLess restores from a process that has missed a change: the one that
// has not keeps its alarm, and restores it.
func TestRestoreOfLess(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	d := dataOf(t, cfg)
	ahead, behind := follower(t, cfg), open(t, cfg)
	apply(t, ahead, putApp("a"))
	require.NoError(t, behind.refresh(t.Context()))
	late := open(t, cfg) // it knows revision 1, too
	want := apply(t, ahead, putApp("b"))
	d.flush()
	resolve(t, behind.Restore, 2, "a")
	wantLost(t, ahead, want, "it holds another catalog, at revision 2, and held revision 2 before")
	cat := resolve(t, ahead.Restore, 3, "a", "b")
	start(t, behind)
	start(t, late)
	awaitCatalog(t, behind, cat)
	wantWorks(t, late, cat)
}

// TestEpochs has a process miss a flush, a restore and another one.
func TestEpochs(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Snapshot = filepath.Join(t.TempDir(), "snapshot")
	d := dataOf(t, cfg)
	asleep := open(t, Config{Server: cfg.Server, Prefix: cfg.Prefix, Log: cfg.Log})
	s := open(t, cfg)
	stop := start(t, s)
	apply(t, s, putApp("a"))
	require.NoError(t, asleep.refresh(t.Context()))
	for i := range 3 {
		d.flush()
		wantLost(t, s, s.Catalog(), "no catalog")
		resolve(t, s.Restore, uint64(2+i), "a")
		stop()
		s = open(t, cfg) // from the file, with the epochs so far
		if s.State().Revision != uint64(2+i) {
			t.Fatalf("got %+v", s.State())
		}
		stop = start(t, s)
	}
	start(t, asleep)
	wantWorks(t, asleep, s.Catalog())
}

// TestFresh knows nothing: whatever is in Redis is right.
func TestFresh(t *testing.T) {
	cfg := config(t)
	s := follower(t, cfg)
	if got := s.State(); got.Source != FromRedis || got.Epoch != "" || got.Revision != 0 || got.Alarm != "" {
		t.Errorf("got %+v", got)
	}
	for name, do := range map[string]func(context.Context) (*serving.Catalog, error){"Restore": s.Restore, "Accept": s.Accept} {
		if _, err := do(t.Context()); !errors.Is(err, ErrNotLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if keys := dataOf(t, cfg).keys(); len(keys) != 0 {
		t.Errorf("to look has written %q", keys)
	}
	// What somebody has left behind without an epoch is no catalog.
	d := dataOf(t, cfg)
	d.client.HSet(t.Context(), s.keys.catalog, "apps/x", "{", "revision", "7")
	d.client.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.log, ID: "7-0", Values: []string{"write", "x"}})
	if cat := apply(t, s, putApp("a")); cat.Revision != 1 || len(cat.Apps) != 1 {
		t.Errorf("got %s", encode(t, cat))
	}
	wantWorks(t, open(t, cfg), s.Catalog())
}

// TestUnreadable has a newer release, and a hand, write what this one cannot read.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for words, fields := range map[string][]any{
		`its format is "2", and this topsail knows up to 1`: {"format", 2},
		"decode apps/b: ": {"apps/b", "{", "revision", 2, "write", "other"},
	} {
		cfg := config(t)
		d := dataOf(t, cfg)
		s := follower(t, cfg)
		want := apply(t, s, putApp("a"))
		before := d.dump()
		d.client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.HSet(t.Context(), s.keys.catalog, append(fields, "write", "other")...)
			return p.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.log, ID: "2-0", Values: []string{"write", "other"}}).Err()
		})
		awaitAlarm(t, s, words)
		if cat, err := s.Apply(t.Context(), putApp("c"), 0); err == nil || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), words) || cat != nil {
			t.Errorf("got %v and error %v", cat, err)
		}
		for _, do := range []func(context.Context) (*serving.Catalog, error){s.Restore, s.Accept} {
			if _, err := do(t.Context()); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("got error %v", err)
			}
		}
		fresh := open(t, cfg)
		if got := fresh.State(); got.Source != FromNothing || !strings.Contains(got.Alarm, words) {
			t.Errorf("a fresh one has %+v", got)
		}
		if s.Catalog() != want {
			t.Errorf("got %s", encode(t, s.Catalog()))
		}
		d.restore(before)
		wantWorks(t, s, want)
	}
}

// TestNewerMinor reads fields, kinds and JSON fields that a newer release has added,
// and leaves the fields alone.
func TestNewerMinor(t *testing.T) {
	cfg := config(t)
	d := dataOf(t, cfg)
	s := open(t, cfg)
	want := apply(t, s, putApp("a"))
	document, err := d.client.HGet(t.Context(), s.keys.catalog, "apps/a").Result()
	require.NoError(t, err)
	d.client.HSet(t.Context(), s.keys.catalog, "apps/a", strings.Replace(document, "{", `{"new":[{}],`, 1), "policies/p", "{}", "new", "1")
	s = open(t, cfg)
	wantWorks(t, s, want)
	if got, err := d.client.HGet(t.Context(), s.keys.catalog, "policies/p").Result(); err != nil || got != "{}" {
		t.Errorf("got %q and error %v", got, err)
	}
}

// replace makes a folder a copy of another one.
func replace(t testing.TB, dir, by string) {
	t.Helper()
	require.NoError(t, errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(by))))
}
