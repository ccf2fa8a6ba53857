package schema

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDidYouMean(t *testing.T) {
	known := []string{"addr", "cache_bytes", "dir", "env", "model"}
	for word, want := range map[string]string{
		"adr":        `: did you mean "addr"?`,
		"modle":      `: did you mean "model"?`,
		"cacheBytes": `: did you mean "cache_bytes"?`,
		"catch_byte": "",
		"id":         "",
		"":           "",
	} {
		if got := DidYouMean(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// The distance is a metric, and one edit is a distance of at most one.
func TestEditDistance(t *testing.T) {
	word := rapid.StringMatching(`[a-c]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		ab, bc, ac := editDistance(a, b), editDistance(b, c), editDistance(a, c)
		if (ab == 0) != (a == b) || ab != editDistance(b, a) || ac > ab+bc {
			t.Fatalf("%q %q %q: %d %d %d", a, b, c, ab, bc, ac)
		}
		at := rapid.IntRange(0, len(a)).Draw(t, "at")
		if d := editDistance(a, a[:at]+"x"+a[at:]); d != 1 {
			t.Fatalf("inserting into %q is a distance of %d", a, d)
		}
	})
}
