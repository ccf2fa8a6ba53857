package consulregistry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

func listOf(names string) (list []serving.Endpoint) {
	for _, name := range names {
		list = append(list, serving.Endpoint{Replica: string(name)})
	}
	return list
}

func namesOf(list []serving.Endpoint) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(e.Replica)
	}
	return b.String()
}

// step is an answer at a time; "!" stands for a failure instead.
type step struct {
	at         time.Duration
	answer     string
	consistent bool
	want       string
}

const s = time.Second

func TestMembership(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"the first answer is believed", []step{{0, "", true, ""}, {1 * s, "ab", false, "ab"}}},
		{"growth and small losses are believed", []step{{0, "abcd", true, "abcd"}, {1, "cdef", false, "cdef"}, {2, "ce", false, "ce"}, {3, "e", false, "e"}}},
		{"one empty answer changes nothing", []step{{0, "abc", true, "abc"}, {1 * s, "", false, "abc"}, {2 * s, "abc", true, "abc"}, {3 * s, "", false, "abc"}}},
		{"a consistent answer confirms", []step{{0, "abc", true, "abc"}, {1 * s, "", false, "abc"}, {2 * s, "", true, ""}}},
		{"a stale answer confirms nothing", []step{{0, "abc", true, "abc"}, {1 * s, "", false, "abc"}, {60 * s, "", false, "abc"}}},
		{"an early answer confirms nothing", []step{{0, "abc", true, "abc"}, {1 * s, "", true, "abc"}, {1900 * time.Millisecond, "", true, "abc"}, {2 * s, "", true, ""}}},
		{"what is new in a doubtful answer is used", []step{{0, "abc", true, "abc"}, {1 * s, "x", false, "abcx"}, {2 * s, "x", true, "x"}}},
		{"after trouble a loss has to last", []step{{0, "abcd", true, "abcd"}, {1 * s, "!", false, "abcd"}, {2 * s, "abc", false, "abcd"}, {3 * s, "abc", true, "abcd"}, {62 * s, "abc", true, "abc"}}},
		{"after trouble everything comes back one by one", []step{
			{0, "abcd", true, "abcd"}, {1 * s, "!", false, "abcd"}, {2 * s, "", true, "abcd"}, {10 * s, "c", true, "abcd"},
			{20 * s, "bcd", true, "abcd"}, {30 * s, "abcd", true, "abcd"}, {31 * s, "abc", false, "abc"},
		}},
		{"trouble while in doubt", []step{{0, "abc", true, "abc"}, {1 * s, "", false, "abc"}, {2 * s, "!", false, "abc"}, {9 * s, "", true, "abc"}, {61 * s, "", true, ""}}},
		{"trouble is over with the first whole answer", []step{{0, "ab", true, "ab"}, {1 * s, "!", false, "ab"}, {2 * s, "abc", false, "abc"}, {3 * s, "bc", false, "bc"}}},
		{"trouble before the first answer", []step{{0, "!", false, ""}, {1 * s, "ab", true, "ab"}}},
	} {
		start := time.Now()
		b := membership{hold: time.Minute}
		for i, step := range test.steps {
			if step.answer == "!" {
				b.suspectAll()
			} else {
				b.update(listOf(step.answer), step.consistent, start.Add(step.at))
			}
			if got := namesOf(b.list); got != step.want {
				t.Errorf("%s: step %d: got %q, want %q", test.name, i, got, step.want)
			}
		}
	}
}

// TestMembershipProperties: whatever comes, the list is sorted, has what the answer
// has, loses little at once, and is the answer when that has lasted.
func TestMembershipProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, now := membership{hold: time.Minute}, time.Now()
		sets := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 0, 6)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*s)).Draw(t, "pause")))
			if rapid.IntRange(0, 4).Draw(t, "trouble") == 0 {
				b.suspectAll()
			}
			names := sets.Draw(t, "answer")
			slices.Sort(names)
			answer := listOf(strings.Join(slices.Compact(names), ""))
			before, doubted := namesOf(b.list), b.pending()
			b.update(answer, rapid.Bool().Draw(t, "consistent"), now)
			if !slices.IsSortedFunc(b.list, byReplica) {
				t.Fatalf("%q is not sorted", namesOf(b.list))
			}
			for _, e := range answer {
				if !strings.Contains(namesOf(b.list), e.Replica) {
					t.Fatalf("%q lacks %q, which the answer has", namesOf(b.list), e.Replica)
				}
			}
			if !doubted && 2*len(b.list) < len(before) {
				t.Fatalf("%q became %q by one answer", before, namesOf(b.list))
			}
			if !b.pending() && namesOf(b.list) != namesOf(answer) {
				t.Fatalf("%q is believed, but the list is %q", namesOf(answer), namesOf(b.list))
			}
		}
		last := listOf("ab")
		b.update(last, true, now)
		if b.update(last, true, now.Add(time.Minute)); namesOf(b.list) != "ab" {
			t.Fatalf("after a minute of %q the list is %q", "ab", namesOf(b.list))
		}
	})
}

func TestIndex(t *testing.T) {
	var i index
	for _, test := range []struct {
		answered uint64
		back     bool
		want     index
	}{{0, false, 1}, {5, false, 5}, {5, false, 5}, {9, false, 9}, {8, true, 0}, {8, false, 8}, {0, true, 0}} {
		if back := i.follow(test.answered); back != test.back || i != test.want {
			t.Errorf("after %d: back %v at %d, want %v at %d", test.answered, back, i, test.back, test.want)
		}
	}
}
