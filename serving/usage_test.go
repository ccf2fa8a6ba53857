package serving

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func drawUsage(t *rapid.T) Usage {
	n := rapid.Uint64Range(0, 5)
	u := Usage{Answers: n.Draw(t, "answers"), Cached: n.Draw(t, "cached"), Failed: n.Draw(t, "failed"), Missed: n.Draw(t, "missed")}
	for i := range u.Answers {
		took := time.Duration(rapid.IntRange(1, 9).Draw(t, "took")) * time.Microsecond
		if u.Micros += uint64(took / time.Microsecond); i == 0 {
			u.Least = took
		}
		u.Least, u.Most = min(u.Least, took), max(u.Most, took)
	}
	if u.Failed > 0 {
		u.Last = &UsageFailure{At: time.Unix(int64(rapid.IntRange(1, 9).Draw(t, "at")), 0)}
	}
	return u
}

// TestUsageAddsUp in whatever parts it comes, and in any order, but for which of two
// failures at the same moment is the last.
func TestUsageAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.Custom(drawUsage), 0, 6).Draw(t, "parts")
		at := func(u Usage) (text string) {
			if u.Last != nil {
				text = u.Last.At.String()
			}
			return text
		}
		var forwards, backwards, halves, rest Usage
		for i, p := range parts {
			forwards.Add(p)
			backwards.Add(parts[len(parts)-1-i])
			if i%2 == 0 {
				halves.Add(p)
			} else {
				rest.Add(p)
			}
		}
		halves.Add(rest)
		for _, other := range []*Usage{&backwards, &halves} {
			if at(*other) != at(forwards) {
				t.Fatalf("the last failure is at %s, or %s", at(*other), at(forwards))
			}
			other.Last = forwards.Last
			if *other != forwards {
				t.Fatalf("%+v, or %+v", *other, forwards)
			}
		}
		if forwards.Empty() != (forwards == Usage{}) {
			t.Fatalf("%+v is empty: %v", forwards, forwards.Empty())
		}
	})
}

func TestUsageKeysAreApart(t *testing.T) {
	keys := []UsageKey{
		{App: "a"}, {App: "a", Stage: "b"}, {App: "a.b"}, {App: "version"}, {ModelID: ModelID{Model: "a", Version: "b"}},
		{ModelID: ModelID{Model: "a", Version: "b"}, Stage: "b"}, {ModelID: ModelID{Model: "a", Version: "b.b"}}, {ModelID: ModelID{Model: "app", Version: "a"}},
	}
	seen := map[string]UsageKey{}
	for _, k := range keys {
		if other, twice := seen[k.String()]; twice {
			t.Errorf("%+v and %+v are both %s", k, other, k)
		}
		seen[k.String()] = k
		if o := k.Object(); o.Stage != "" || o.App != k.App || o.ModelID != k.ModelID {
			t.Errorf("%+v is of %+v", k, o)
		}
	}
}

func TestUsageFailuresAreShort(t *testing.T) {
	at := time.Date(2026, 9, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	f := NewUsageFailure(&Failure{Cause: ModelError, Message: "ValueError: \xff"}, at)
	if f.Cause != "model_error" || f.Message != "Model error: ValueError: \ufffd" || f.At != time.Date(2026, 9, 1, 11, 0, 0, 123e6, time.UTC) {
		t.Errorf("got %+v", f)
	}
	for _, letter := range []string{"a", "é", "€", "😀"} {
		for n := range 4 {
			m := NewUsageFailure(&Failure{Cause: ModelError, Message: strings.Repeat("x", n) + strings.Repeat(letter, MaxUsageMessage)}, at).Message
			if len(m) > MaxUsageMessage || len(m) < MaxUsageMessage-6 || !utf8.ValidString(m) || !strings.HasSuffix(m, letter+"…") {
				t.Errorf("%d bytes: %q", len(m), m)
			}
		}
	}
	if m := NewUsageFailure(&Failure{Cause: ModelError, Message: strings.Repeat("x", MaxUsageMessage-len("Model error: "))}, at).Message; strings.HasSuffix(m, "…") {
		t.Errorf("cut to %d bytes: %q", len(m), m)
	}
}
