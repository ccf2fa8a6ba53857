package contract

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// StateStore is the seam of selection states, which several gateways share.
type StateStore interface {
	// LoadState returns a state and the revision that SwapState asks for; nil and 0
	// where there is none. Its expiry is pushed back.
	LoadState(ctx context.Context, key serving.StateKey) (text []byte, revision uint64, err error)
	// SwapState stores a text, durably, if the state is still at a revision (0: there
	// is none yet), and returns the next one; else it fails with ErrStateConflict. No
	// revision of a key comes back, not even after the state has gone.
	SwapState(ctx context.Context, key serving.StateKey, revision uint64, text []byte) (next uint64, err error)
	// SetStateAside moves a state that is at a revision under another name, which it
	// returns: there is none from then on. The newest few of an app are kept.
	SetStateAside(ctx context.Context, key serving.StateKey, revision uint64, why string) (as string, err error)
	// StatesOf is some of the app's states, limit at the most, sorted.
	StatesOf(ctx context.Context, app string, limit int) ([]serving.StateKey, error)
}

// States runs the suite. open makes an empty store, which the test closes at its end:
// another returns it as another gateway has it, which may be the same one.
func States(t *testing.T, open func(t *testing.T) (another func() StateStore)) {
	tests := []struct {
		name string
		run  func(s states)
	}{
		{"none", states.none},
		{"load and swap", states.swap},
		{"conflicts", states.conflicts},
		{"revisions are used once", states.revisions},
		{"hostile keys", states.hostile},
		{"any bytes", states.anyBytes},
		{"large texts", states.large},
		{"set aside", states.aside},
		{"the states of an app", states.ofApp},
		{"an ended context", states.endedContext},
		{"counting together", states.counting},
		{"the first of many", states.first},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			another := open(t)
			test.run(states{t, another(), another})
		})
	}
}

type states struct {
	*testing.T
	store   StateStore
	another func() StateStore
}

func stateKey(user string) serving.StateKey {
	return serving.StateKey{App: "a", Kind: "exp3", User: user}
}

// swapIn swaps, which must succeed and be seen by another.
func (s states) swapIn(key serving.StateKey, revision uint64, text string) uint64 {
	s.Helper()
	next, err := s.store.SwapState(s.Context(), key, revision, []byte(text))
	if err != nil || next == 0 || next == revision {
		s.Fatalf("%v: swapped revision %d for %d with error %v", key, revision, next, err)
	}
	s.want(key, text, next)
	return next
}

func (s states) want(key serving.StateKey, text string, revision uint64) {
	s.Helper()
	for _, store := range []StateStore{s.another(), s.store} {
		got, at, err := store.LoadState(s.Context(), key)
		if err != nil || at != revision || string(got) != text || (got == nil) != (revision == 0) {
			s.Fatalf("%v: got %.100q at revision %d and error %v, want %.100q at %d", key, got, at, err, text, revision)
		}
	}
}

// refuse swaps, which must be a conflict and change nothing.
func (s states) refuse(key serving.StateKey, revision uint64) {
	s.Helper()
	text, at, err := s.store.LoadState(s.Context(), key)
	require.NoError(s, err)
	if next, err := s.another().SwapState(s.Context(), key, revision, []byte("refused")); !errors.Is(err, serving.ErrStateConflict) || next != 0 {
		s.Fatalf("%v: swapped revision %d at %d for %d with error %v", key, revision, at, next, err)
	}
	if as, err := s.another().SetStateAside(s.Context(), key, revision, "refused"); revision != 0 && (!errors.Is(err, serving.ErrStateConflict) || as != "") {
		s.Fatalf("%v: set revision %d at %d aside as %q with error %v", key, revision, at, as, err)
	}
	s.want(key, string(text), at)
}

func (s states) none() {
	s.want(stateKey("u"), "", 0)
	s.refuse(stateKey("u"), 1)
	s.wantStates("a", 10)
}

func (s states) swap() {
	first := s.swapIn(stateKey("u"), 0, "1")
	second := s.swapIn(stateKey("u"), first, "2")
	s.swapIn(stateKey(""), 0, "of the app")
	s.want(stateKey("u"), "2", second)
	s.swapIn(stateKey("u"), second, "2")
}

func (s states) conflicts() {
	key := stateKey("u")
	first := s.swapIn(key, 0, "1")
	s.refuse(key, 0)
	s.refuse(key, first+1)
	second := s.swapIn(key, first, "2")
	s.refuse(key, first)
	s.swapIn(key, second, "3")
	s.refuse(key, first)
	s.refuse(key, second)
}

// revisions takes a state away and makes it again: no old revision fits the new one.
func (s states) revisions() {
	key, used := stateKey("u"), map[uint64]bool{}
	for range 5 {
		revision := uint64(0)
		for range 3 {
			revision = s.swapIn(key, revision, "text")
			if used[revision] {
				s.Fatalf("revision %d came back", revision)
			}
			used[revision] = true
		}
		if _, err := s.store.SetStateAside(s.Context(), key, revision, "to begin again"); err != nil {
			s.Fatal(err)
		}
		for old := range used {
			s.refuse(key, old)
		}
	}
}

// hostileNames are names of apps, users and contexts that a store could mix up.
func hostileNames() []string {
	return []string{
		"", " ", "a", "A", "a b", "a:b", "a/b", "a\x00b", "{", "}", "{}", "{a}", "{a}:b", "*", "?", "[a]", `"`, `""`, `a" "b`, `\`, `\"`,
		"\r\n", "\xff\xfe", "\xef\xbf\xbd", "ü", strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("\xff", 256),
	}
}

// hostile has every name in every place: each state is its own.
func (s states) hostile() {
	var keys []serving.StateKey
	for _, name := range hostileNames() {
		keys = append(keys, serving.StateKey{App: name}, serving.StateKey{App: "a", Kind: name}, serving.StateKey{App: "a", User: name}, serving.StateKey{App: "a", Context: name})
	}
	slices.SortFunc(keys, serving.StateKey.Compare)
	keys = slices.Compact(keys)
	revisions := map[serving.StateKey]uint64{}
	for _, key := range keys {
		revisions[key] = s.swapIn(key, 0, key.String())
	}
	ofApp := map[string][]serving.StateKey{}
	for _, key := range keys {
		s.want(key, key.String(), revisions[key])
		ofApp[key.App] = append(ofApp[key.App], key)
	}
	for app, keys := range ofApp {
		s.wantStates(app, 1000, keys...)
	}
}

func (s states) anyBytes() {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i, text := range []string{"{", "\x00", "", "\xff\xfe\xfd", string(all), `{"kind":"exp3"`, "a\nb\r\n"} {
		s.swapIn(stateKey(numbered("", i)), 0, text)
	}
}

func (s states) large() {
	key := stateKey("u")
	revision := s.swapIn(key, 0, strings.Repeat("0123456789abcdef", serving.MaxState/16))
	next, err := s.store.SwapState(s.Context(), key, revision, make([]byte, serving.MaxState+1))
	if err == nil || next != 0 || errors.Is(err, serving.ErrStateConflict) {
		s.Fatalf("swapped for %d with error %v", next, err)
	}
	s.swapIn(key, revision, "small")
}

func (s states) aside() {
	key, names := stateKey("u"), map[string]bool{}
	other := s.swapIn(stateKey("v"), 0, "of another")
	for range 20 {
		revision := s.swapIn(key, 0, "\xffcorrupt")
		as, err := s.store.SetStateAside(s.Context(), key, revision, "it has no \x00 kind")
		if err != nil || as == "" || names[as] {
			s.Fatalf("set aside as %q with error %v", as, err)
		}
		names[as] = true
		s.want(key, "", 0)
		s.wantStates("a", 10, stateKey("v"))
		s.refuse(key, revision)
	}
	if as, err := s.store.SetStateAside(s.Context(), key, 0, "there is none"); !errors.Is(err, serving.ErrStateConflict) || as != "" {
		s.Fatalf("set nothing aside as %q with error %v", as, err)
	}
	s.want(stateKey("v"), "of another", other)
}

func (s states) wantStates(app string, limit int, want ...serving.StateKey) {
	s.Helper()
	got, err := s.another().StatesOf(s.Context(), app, limit)
	if err != nil || !slices.Equal(got, want) {
		s.Fatalf("the states of %q: got %q and error %v, want %q", app, got, err, want)
	}
}

func (s states) ofApp() {
	var want []serving.StateKey
	for i := range 30 {
		key := stateKey(numbered("user-", 10+i))
		s.swapIn(key, s.swapIn(key, 0, "1"), "2")
		s.swapIn(serving.StateKey{App: "aa", Kind: "exp3", User: numbered("", i)}, 0, "1")
		want = append(want, key)
	}
	s.wantStates("a", 30, want...)
	s.wantStates("a", 1000, want...)
	s.wantStates("a", 0)
	s.wantStates("b", 10)
	some, err := s.store.StatesOf(s.Context(), "a", 7)
	if err != nil || len(some) != 7 || !slices.IsSortedFunc(some, serving.StateKey.Compare) || slices.ContainsFunc(some, func(k serving.StateKey) bool { return !slices.Contains(want, k) }) {
		s.Fatalf("got %v and error %v", some, err)
	}
}

func (s states) endedContext() {
	key := stateKey("u")
	revision := s.swapIn(key, 0, "1")
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if text, at, err := s.store.LoadState(ctx, key); !errors.Is(err, context.Canceled) || text != nil || at != 0 {
		s.Errorf("loaded %q at %d with error %v", text, at, err)
	}
	if next, err := s.store.SwapState(ctx, key, revision, []byte("2")); !errors.Is(err, context.Canceled) || next != 0 {
		s.Errorf("swapped for %d with error %v", next, err)
	}
	if as, err := s.store.SetStateAside(ctx, key, revision, "why"); !errors.Is(err, context.Canceled) || as != "" {
		s.Errorf("set aside as %q with error %v", as, err)
	}
	if keys, err := s.store.StatesOf(ctx, "a", 10); !errors.Is(err, context.Canceled) || keys != nil {
		s.Errorf("states %v with error %v", keys, err)
	}
	s.want(key, "1", revision)
}

// counting has several gateways count in the same states: load, add one, swap unless
// somebody was quicker. The sums are right only if no two swapped the same revision.
func (s states) counting() {
	const gateways, each = 8, 20
	keys := []serving.StateKey{stateKey(""), stateKey("u")}
	var all sync.WaitGroup
	for range gateways {
		store := s.another()
		all.Go(func() {
			for i := range each * len(keys) {
				if err := count(s.Context(), store, keys[i%len(keys)]); err != nil {
					s.Errorf("count: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, key := range keys {
		if text, _, err := s.store.LoadState(s.Context(), key); err != nil || string(text) != strconv.Itoa(gateways*each) {
			s.Errorf("counted to %q, want %d; error %v", text, gateways*each, err)
		}
	}
}

func count(ctx context.Context, store StateStore, key serving.StateKey) error {
	for {
		text, revision, err := store.LoadState(ctx, key)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi("0" + string(text))
		if err != nil {
			return err
		}
		if _, err = store.SwapState(ctx, key, revision, strconv.AppendInt(nil, int64(n)+1, 10)); !errors.Is(err, serving.ErrStateConflict) {
			return err
		}
	}
}

// first has many make the same state: one does.
func (s states) first() {
	const makers = 8
	for i := range 10 {
		var all sync.WaitGroup
		made := make(chan uint64, makers)
		for range makers {
			store := s.another()
			all.Go(func() {
				revision, err := store.SwapState(s.Context(), stateKey(numbered("", i)), 0, []byte("made"))
				if err == nil {
					made <- revision
				} else if !errors.Is(err, serving.ErrStateConflict) {
					s.Errorf("make: %v", err)
				}
			})
		}
		all.Wait()
		close(made)
		if n := len(made); n != 1 {
			s.Fatalf("%d made the same state", n)
		}
		s.want(stateKey(numbered("", i)), "made", <-made)
	}
}
