package traffic

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRingKeepsWhatIsRecent compares a ring with a map that forgets nothing.
func TestRingKeepsWhatIsRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]int64{1, 10}).Draw(t, "step")
		span := 5 * perChunk * step
		r := newRing(step, span, 2)
		all := map[int64]float64{} // by step
		now := int64(1_700_000_000)
		for range rapid.IntRange(1, 100).Draw(t, "puts") {
			now += rapid.Int64Range(0, 2*span/3).Draw(t, "later")
			at := now - rapid.Int64Range(0, 3*perChunk*step).Draw(t, "late")
			v := float64(rapid.IntRange(1, 100).Draw(t, "value"))
			r.add(1, at, v)
			all[at/step] += v
		}
		for s := (now - span) / step; s <= now/step; s++ {
			want, ok := all[s]
			if got := r.at(1, s); math.IsNaN(got) == ok && s > (now-span)/step || ok && !math.IsNaN(got) && got != want {
				t.Fatalf("step %d of %d: %v, want %v", s, now/step, got, want)
			}
			if got := r.at(0, s); !math.IsNaN(got) {
				t.Fatalf("a column that nothing was put into has %v", got)
			}
		}
	})
}

func TestViewsAreBounded(t *testing.T) {
	s := newSeries(1)
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.IntRange(60, 7*24*3600).Draw(t, "window")) * time.Second
		until := rapid.Int64Range(1_700_000_000, 1_800_000_000).Draw(t, "until")
		v := s.view(window, until)
		times := v.times()
		last := times[len(times)-1]
		switch {
		case len(times) > maxPoints:
			t.Fatalf("%d points", len(times))
		case last > until || last+int64(v.step()) <= until:
			t.Fatalf("the last point, %d and %d s, does not have the last second %d", last, v.step(), until)
		case time.Duration(len(times)*v.step())*time.Second < window-2*time.Duration(v.step())*time.Second:
			t.Fatalf("%d points of %d s for %s", len(times), v.step(), window)
		}
	})
}
