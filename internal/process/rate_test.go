//go:build unix

package process

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRateBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rateBound
		burst := func(n int) (passed, missed int) {
			for range n {
				pass, m := r.allow(time.Now())
				if pass {
					passed++
				}
				missed += m
			}
			return passed, missed
		}
		for _, step := range []struct {
			wait                  time.Duration
			lines, passed, missed int
		}{
			{0, 150, 150, 0},
			{999 * time.Millisecond, 100, 50, 0},
			{time.Millisecond, 10, 10, 50}, // the second is over
			{time.Second, 1000, 200, 0},
			{time.Hour, 1, 1, 800},
		} {
			time.Sleep(step.wait)
			if passed, missed := burst(step.lines); passed != step.passed || missed != step.missed {
				t.Errorf("after %v: %d of %d passed, %d missed before; want %d and %d",
					step.wait, passed, step.lines, missed, step.passed, step.missed)
			}
		}
		burst(205)
		if got := r.takeMissed(); got != 6 {
			t.Errorf("%d missed at the end, want 6", got)
		}
		if got := r.takeMissed(); got != 0 {
			t.Errorf("%d missed twice", got)
		}
	})
}
