package predict

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

// TestScales: whatever the objective, bounds are close to each other where answers are, and few; and
// when it changes no bucket that both scales have goes back.
func TestScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objective := time.Duration(rapid.Int64Range(int64(100*time.Microsecond), int64(serving.MaxSLO)).Draw(t, "objective"))
		s := newScale(objective)
		if len(s.bounds) > 130 || !slices.IsSorted(s.bounds) {
			t.Fatalf("%d bounds: %v", len(s.bounds), s.bounds)
		}
		for i, upTo := range s.bounds[1:] {
			above := s.bounds[i]
			if apart := upTo / above; apart > 1.7 || upTo >= objective.Seconds()/100 && above <= 1.25*objective.Seconds() && apart > 1.054 {
				t.Fatalf("%v: %v is followed by %v", objective, above, upTo)
			}
		}
		var counted times
		n := rapid.IntRange(0, 100).Draw(t, "n")
		for range n {
			counted.add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "took")))
		}
		sum, upTo := uint64(0), map[float64]uint64{}
		for i, n := range s.of(&counted) {
			if sum += n; i < len(s.bounds) {
				upTo[s.bounds[i]] = sum
			}
		}
		if sum != uint64(n) {
			t.Fatalf("%d of %d were counted", sum, n)
		}
		other := newScale(time.Duration(rapid.Int64Range(int64(100*time.Microsecond), int64(serving.MaxSLO)).Draw(t, "another objective")))
		sum = 0
		for i, n := range other.of(&counted) {
			sum += n
			if i < len(other.bounds) && upTo[other.bounds[i]] != sum && slices.Contains(s.bounds, other.bounds[i]) {
				t.Fatalf("up to %v there are %d and %d", other.bounds[i], upTo[other.bounds[i]], sum)
			}
		}
	})
}
