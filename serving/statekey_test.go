package serving

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestStateKey writes and reads keys of any bytes.
func TestStateKey(t *testing.T) {
	part := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "part")) })
	rapid.Check(t, func(t *rapid.T) {
		key := StateKey{part.Draw(t, "app"), part.Draw(t, "kind"), part.Draw(t, "user"), part.Draw(t, "context")}
		if got, err := ParseStateKey(key.String()); err != nil || got != key {
			t.Errorf("%v: got %v and error %v", key, got, err)
		}
	})
	for key, want := range map[StateKey]string{
		{}: `"" "" "" ""`,
		{App: "a", Kind: "exp3", User: `"u" `, Context: "\xff"}: `"a" "exp3" "\"u\" " "\xff"`,
	} {
		if got := key.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestStateKeysInOrder(t *testing.T) {
	want := []StateKey{{}, {Context: "a"}, {User: "a"}, {Kind: "a"}, {App: "a"}, {App: "a", Context: "a"}, {App: "b"}}
	got := slices.Clone(want)
	slices.Reverse(got)
	if slices.SortFunc(got, StateKey.Compare); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// FuzzParseStateKey: what can be read is what would be written.
func FuzzParseStateKey(f *testing.F) {
	for _, text := range []string{"", `"a" "b" "c" "d"`, `"a" "b" "c"`, `"a"  "b" "c" "d"`, `"a" "b" "c" "d" `, "`a` \"b\" \"c\" \"d\"", `'a' "b" "c" "d"`, `"\x61" "b" "c" "d"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseStateKey(text)
		if err == nil && key.String() != text || err != nil && key != (StateKey{}) {
			t.Errorf("%q: got %v and error %v", text, key, err)
		}
	})
}
