package redisstore

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

func TestUsageContract(t *testing.T) {
	contract.Usage(t, func(t *testing.T) (another, reopen func() contract.UsageStore, forget func()) {
		cfg := config(t)
		s := open(t, cfg)
		another = func() contract.UsageStore { return open(t, cfg) }
		return another, another, func() { forgetUsage(t, s) }
	})
}

// forgetUsage drops all usage that is in Redis.
func forgetUsage(t testing.TB, s *Store) {
	t.Helper()
	keys, err := s.client.Keys(t.Context(), "{"+s.keys.prefix+"}:usage*").Result()
	if err == nil {
		err = s.client.Del(t.Context(), keys...).Err()
	}
	require.NoError(t, err)
}

var usageOfA = serving.UsageKey{App: "a"}

// gave reports so many answers of app a, as the next report of a writer.
func gave(t testing.TB, s *Store, writer string, number, n uint64) {
	t.Helper()
	r := serving.UsageReport{Writer: writer, Number: number, Revision: 1 << 40, Counted: []serving.Usage{{Key: usageOfA, Answers: n}}}
	require.NoError(t, s.AddUsage(t.Context(), r))
}

func wantAnswers(t testing.TB, s *Store, want uint64) serving.Usage {
	t.Helper()
	all, err := s.UsageOf(t.Context(), []serving.UsageKey{usageOfA})
	if err != nil || len(all) != 1 || all[0].Answers != want {
		t.Fatalf("got %+v and error %v, want %d answers", all, err, want)
	}
	return all[0]
}

// TestUsageWritersExpire leaves nothing of a process that is gone, not before nobody
// repeats its reports any more.
func TestUsageWritersExpire(t *testing.T) {
	cfg := config(t)
	s, d := open(t, cfg), dataOf(t, cfg)
	apply(t, s, putApp("a"))
	gave(t, s, "w", 1, 1)
	ttl := d.client.TTL(t.Context(), s.keys.usageWriter("w")).Val()
	if ttl > serving.UsageWriters || ttl < serving.UsageWriters-time.Minute || ttl < 2*serving.UsageDoubt {
		t.Errorf("the writer is known for %v", ttl)
	}
	if ttl := d.client.TTL(t.Context(), s.keys.usage(usageOfA)).Val(); ttl != -1 {
		t.Errorf("usage goes after %v", ttl)
	}
}

// TestUsageThatWasLeft has usage of an app that a release deleted which did not count: the
// next app of the name begins anew.
func TestUsageThatWasLeft(t *testing.T) {
	cfg := config(t)
	s, d := open(t, cfg), dataOf(t, cfg)
	before := time.Now().Add(-time.Millisecond)
	d.client.HSet(t.Context(), s.keys.usage(usageOfA), "since", 1, "revision", 1, "/answers", 1000)
	apply(t, s, putApp("a"))
	if since := wantAnswers(t, s, 0).Since; since.Before(before) {
		t.Errorf("since %v", since)
	}
}

// TestUsageIsNoDanger has something else in place of usage: the catalog is written, and
// the rest of a report counted, once.
func TestUsageIsNoDanger(t *testing.T) {
	cfg := config(t)
	s, d := open(t, cfg), dataOf(t, cfg)
	apply(t, s, putApp("a"))
	for _, name := range []string{"b", "c"} {
		apply(t, s, putApp(name))
		key := s.keys.usage(serving.UsageKey{App: name})
		d.client.Del(t.Context(), key)
		d.client.Set(t.Context(), key, "x", 0)
	}
	r := serving.UsageReport{Writer: "w", Number: 1, Revision: 1 << 40, Counted: []serving.Usage{
		{Key: serving.UsageKey{App: "b"}, Answers: 1, Last: &serving.UsageFailure{At: time.Now()}}, {Key: usageOfA, Answers: 1},
	}}
	for range 2 {
		require.NoError(t, s.AddUsage(t.Context(), r))
	}
	wantAnswers(t, s, 1)
	d.client.HSet(t.Context(), s.keys.usage(usageOfA), "/answers", "many", "/least", "x", "/last", "{", "/last_at", "y")
	gave(t, s, "w", 2, 1)
	wantAnswers(t, s, 0)
	changed := app("b")
	changed.SLO = serving.Duration(time.Minute)
	apply(t, s, catalog.PutApp{App: changed})
	apply(t, s, catalog.DeleteApp{Name: "b"})
	apply(t, s, putApp("b"))
	if all, err := s.UsageOf(t.Context(), []serving.UsageKey{{App: "b"}}); err != nil || len(all) != 1 || all[0].Since.IsZero() {
		t.Errorf("got %+v and error %v", all, err)
	}
}

// TestUsageSurvivesAnOlderCopy has Redis be given back an older copy: what it counted
// since is gone, and nothing is counted twice.
func TestUsageSurvivesAnOlderCopy(t *testing.T) {
	cfg := config(t)
	d, s := dataOf(t, cfg), follower(t, cfg)
	apply(t, s, putApp("a"))
	gave(t, s, "w", 1, 10)
	since := wantAnswers(t, s, 10).Since
	copied := d.dump()
	apply(t, s, putApp("b"))
	gave(t, s, "w", 2, 10)
	gave(t, s, "w", 3, 10)
	d.restore(copied)
	resolve(t, s.Restore, 3, "a", "b")
	if got := wantAnswers(t, s, 10).Since; !got.Equal(since) {
		t.Errorf("since %v, want %v", got, since)
	}
	gave(t, s, "w", 1, 10)
	wantAnswers(t, s, 10)
	gave(t, s, "w", 2, 5)
	wantAnswers(t, s, 15)

	d.flush()
	resolve(t, s.Restore, 4, "a", "b")
	if got := wantAnswers(t, s, 0).Since; got.Before(since) {
		t.Errorf("since %v", got)
	}
}
