package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

func TestStatesContract(t *testing.T) {
	contract.States(t, func(t *testing.T) func() contract.StateStore {
		cfg := config(t)
		return func() contract.StateStore { return open(t, cfg) }
	})
}

// learner is a Store with what there is to look at in Redis.
type learner struct {
	*testing.T
	*Store
	redis *redis.Client
	key   serving.StateKey
}

func newLearner(t *testing.T) learner {
	cfg := config(t)
	return learner{t, open(t, cfg), client(t, shared.start(t)), serving.StateKey{App: "a", Kind: "exp3", User: "u"}}
}

func (l learner) swap(key serving.StateKey, revision uint64, text string) uint64 {
	l.Helper()
	next, err := l.SwapState(l.Context(), key, revision, []byte(text))
	require.NoError(l, err)
	return next
}

func (l learner) wantState(key serving.StateKey, text string, revision uint64) {
	l.Helper()
	got, at, err := l.LoadState(l.Context(), key)
	if err != nil || string(got) != text || at != revision {
		l.Errorf("got %q at %d and error %v, want %q at %d", got, at, err, text, revision)
	}
}

func (l learner) wantTTL(key string, want time.Duration) {
	l.Helper()
	if got, err := l.redis.PTTL(l.Context(), key).Result(); err != nil || got > want || got < want-time.Minute {
		l.Errorf("%s expires in %v, want %v; error %v", key, got, want, err)
	}
}

// TestStatesExpire has Redis forget states that nobody sees, and nothing stay for good.
func TestStatesExpire(t *testing.T) {
	l := newLearner(t)
	name := l.keys.state(l.key)
	revision := l.swap(l.key, 0, "1")
	l.wantTTL(name, serving.StateExpiry)
	l.redis.Expire(t.Context(), name, time.Hour)
	l.wantState(l.key, "1", revision)
	l.wantTTL(name, serving.StateExpiry)
	l.redis.Expire(t.Context(), name, time.Hour)
	revision = l.swap(l.key, revision, "2")
	l.wantTTL(name, serving.StateExpiry)
	as, err := l.SetStateAside(t.Context(), l.key, revision, "why")
	require.NoError(t, err)
	l.wantTTL(as, serving.StateExpiry)
	l.wantTTL(l.keys.states("a"), serving.StateExpiry)
	l.wantTTL(l.keys.asides("a"), serving.StateExpiry)
	aside := l.redis.HGetAll(t.Context(), as).Val()
	if aside["text"] != "2" || aside["why"] != "why" || aside["key"] != `"a" "exp3" "u" ""` || aside["at"] == "" {
		t.Errorf("set aside %v", aside)
	}
}

// TestGoneStates lists the states of an app of which some have expired.
func TestGoneStates(t *testing.T) {
	l := newLearner(t)
	var want []serving.StateKey
	for i := range statePage + 20 {
		key := serving.StateKey{App: "a", User: fmt.Sprintf("%04d", i)}
		l.swap(key, 0, "1")
		if i%2 == 0 {
			l.redis.Del(t.Context(), l.keys.state(key))
		} else {
			want = append(want, key)
		}
	}
	l.redis.ZAdd(t.Context(), l.keys.states("a"), redis.Z{Score: 1e15, Member: "of another release"})
	for _, limit := range []int{1, 7, statePage, 10_000} {
		got, err := l.StatesOf(t.Context(), "a", limit)
		if err != nil || len(got) != min(limit, len(want)) || limit > len(want) && !slices.Equal(got, want) {
			t.Errorf("limit %d: got %d and error %v", limit, len(got), err)
		}
	}
	if got, err := l.StatesOf(t.Context(), "a", -1); err != nil || len(got) != 0 {
		t.Errorf("got %v and error %v", got, err)
	}
}

// TestIndexIsBounded drops the oldest names.
func TestIndexIsBounded(t *testing.T) {
	l := newLearner(t)
	var members []redis.Z
	for i := range keptStates + 5 {
		members = append(members, redis.Z{Score: float64(i), Member: fmt.Sprint(i)})
	}
	l.redis.ZAdd(t.Context(), l.keys.states("a"), members...)
	l.swap(l.key, 0, "1")
	names := l.redis.ZRange(t.Context(), l.keys.states("a"), 0, -1).Val()
	if len(names) != keptStates || names[0] != "6" || names[keptStates-1] != l.key.String() {
		t.Errorf("%d names are kept", len(names))
	}
}

func TestAsidesAreBounded(t *testing.T) {
	l := newLearner(t)
	var asides []string
	for i := range keptAsides + 5 {
		key := serving.StateKey{App: "a", User: fmt.Sprint(i)}
		as, err := l.SetStateAside(t.Context(), key, l.swap(key, 0, "corrupt"), "why")
		require.NoError(t, err)
		asides = append(asides, as)
		l.redis.ZAdd(t.Context(), l.keys.asides("a"), redis.Z{Score: float64(i), Member: as}) // in order, whatever the clock
	}
	for i, as := range asides {
		if there := l.redis.Exists(t.Context(), as).Val() == 1; there != (i >= 5) {
			t.Errorf("number %d is kept: %v", i, there)
		}
	}
	if n := l.redis.ZCard(t.Context(), l.keys.asides("a")).Val(); n != keptAsides {
		t.Errorf("%d are named", n)
	}
}

// TestSwapRepeated is what a client does that has lost its connection: what it stored
// is stored once, also when somebody has stored another state since.
func TestSwapRepeated(t *testing.T) {
	l := newLearner(t)
	first := l.swap(l.key, 0, "1")
	repeat := func(revision, next uint64, text string) any {
		t.Helper()
		outcome, err := l.run(t.Context(), l.scripts.swap, []string{l.keys.state(l.key)}, digits(revision), digits(next), text, l.key.String(), expirySeconds)
		require.NoError(t, err)
		return outcome
	}
	second := l.swap(l.key, first, "2")
	third := l.swap(l.key, second, "3")
	if got := repeat(first, second, "2"); got != done {
		t.Errorf("repeated: %v", got)
	}
	if got := repeat(0, first, "1"); got != done {
		t.Errorf("repeated: %v", got)
	}
	l.wantState(l.key, "3", third)
	for range 20 {
		third = l.swap(l.key, third, "3")
	}
	if got := repeat(first, second, "2"); got != conflict {
		t.Errorf("repeated after too long: %v", got)
	}
	if kept := l.redis.HGet(t.Context(), l.keys.state(l.key), "revisions").Val(); len(kept) != 16*16 {
		t.Errorf("%d bytes of revisions are kept", len(kept))
	}
}

// TestSetAsideRepeated is the same for a state that was set aside.
func TestSetAsideRepeated(t *testing.T) {
	l := newLearner(t)
	first, as := l.swap(l.key, 0, "1"), l.keys.aside(l.key)
	move := func() any {
		t.Helper()
		outcome, err := l.run(t.Context(), l.scripts.aside, []string{l.keys.state(l.key), as}, digits(first), "why", "now", expirySeconds)
		require.NoError(t, err)
		return outcome
	}
	if got := move(); got != done {
		t.Errorf("got %v", got)
	}
	fresh := l.swap(l.key, 0, "fresh")
	if got := move(); got != done {
		t.Errorf("repeated: %v", got)
	}
	l.wantState(l.key, "fresh", fresh)
	if text := l.redis.HGet(t.Context(), as, "text").Val(); text != "1" {
		t.Errorf("set aside %q", text)
	}
}

// TestDamagedState has something in place of a state that no release wrote.
func TestDamagedState(t *testing.T) {
	var log journal.Journal
	cfg := config(t)
	cfg.Log = log.Logger()
	l := learner{t, open(t, cfg), client(t, shared.start(t)), serving.StateKey{App: "a"}}
	name := l.keys.state(l.key)
	damage := []func(){
		func() { l.redis.Set(t.Context(), name, "garbage", 0) },
		func() { l.redis.RPush(t.Context(), name, "garbage") },
		func() { l.redis.HSet(t.Context(), name, "text", "garbage") },
		func() { l.redis.HSet(t.Context(), name, "text", "garbage", "revisions", "1") },
		func() { l.redis.HSet(t.Context(), name, "text", "garbage", "revisions", "a revision of many letters") },
		func() { l.redis.HSet(t.Context(), name, "revisions", digits(1)) },
	}
	for i, damage := range damage {
		damage()
		l.wantState(l.key, "", 0)
		revision := l.swap(l.key, 0, "fresh")
		l.wantState(l.key, "fresh", revision)
		l.redis.Del(t.Context(), name)
		if n := log.Count("set aside"); n != i+1 {
			t.Errorf("said %d times that something was set aside, want %d", n, i+1)
		}
	}
	for _, as := range l.redis.ZRange(t.Context(), l.keys.asides("a"), 0, -1).Val() {
		l.wantTTL(as, serving.StateExpiry)
	}
}

func BenchmarkSwapState(b *testing.B) {
	s, key, revision := open(b, config(b)), serving.StateKey{App: "a"}, uint64(0)
	text := make([]byte, 1000)
	b.ReportAllocs()
	for b.Loop() {
		next, err := s.SwapState(b.Context(), key, revision, text)
		require.NoError(b, err)
		revision = next
	}
}
