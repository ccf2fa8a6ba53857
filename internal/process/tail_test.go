//go:build unix

package process

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ring tail
		var all []string
		for i := range rapid.IntRange(0, 3*tailLines).Draw(t, "added") {
			line := strconv.Itoa(i)
			ring.add(line)
			all = append(all, line)
		}
		n := rapid.IntRange(-1, tailLines+10).Draw(t, "n")
		want := all[len(all)-max(0, min(n, len(all), tailLines)):]
		if got := ring.last(n); !slices.Equal(got, want) {
			t.Fatalf("last %d of %d: %q", n, len(all), got)
		}
	})
}
