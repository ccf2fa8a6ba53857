package scheduler_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/scheduler"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestStep raises the load tenfold, at every moment of a second and with reports
// that are seen soon or late.
func TestStep(t *testing.T) {
	for _, late := range []time.Duration{20 * time.Millisecond, 180 * time.Millisecond, 900 * time.Millisecond} {
		for _, offset := range []int{0, 250, 500, 750, 950} {
			t.Run(fmt.Sprintf("%v/%d", late, offset), func(t *testing.T) {
				in(t, func(w *world) { w.step(late, time.Duration(offset)*time.Millisecond) })
			})
		}
	}
}

func (w *world) step(late, offset time.Duration) {
	const before, after = 800, 8000
	w.late = late
	w.deployed(m1, &serving.ScaleSpec{Max: 100}, 4)
	w.apply(app("m"))
	begin := time.Now().Add(90*time.Second + offset)
	w.setLoad(m1, func(s time.Time) uint64 {
		old := min(max(begin.Sub(s).Seconds(), 0), 1)
		return uint64(before*old + after*(1-old))
	})
	w.lead()
	time.Sleep(time.Until(begin))
	w.wantCount("before the step", m1, 4)
	w.asked(m1)
	time.Sleep(2500 * time.Millisecond)
	first := w.asked(m1)
	if len(first) == 0 {
		w.Fatal("nothing was asked for within 2.5 s of the step")
	}
	time.Sleep(5500 * time.Millisecond)
	need := after / (0.7 * each)
	full := w.count(m1)
	if float64(full) < need/1.1 || full > int(math.Ceil(need)) {
		w.Errorf("8 s after the step there are %d replicas, the load needs %.2f", full, need)
	}
	if more := w.asked(m1); len(more) > 2 {
		w.Errorf("after the first increase there were %d more changes: %v", len(more), more)
	}
	time.Sleep(90 * time.Second)
	w.wantCount("long after the step", m1, full)
}

// TestZeroAndBack lets a version go to zero, wakes it, and lets it go again.
func TestZeroAndBack(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 5}, 1)
		w.apply(app("m"))
		w.setLoad(m1, steady(10))
		w.lead()
		time.Sleep(5 * time.Minute)
		w.wantCount("with queries", m1, 1)
		w.setLoad(m1, steady(0))
		time.Sleep(59 * time.Second)
		w.wantCount("before the idle time is over", m1, 1)
		time.Sleep(3 * time.Second)
		w.wantCount("after the idle time", m1, 0)
		time.Sleep(10 * time.Minute)
		w.wantCount("at zero", m1, 0)
		if got := w.asked(m1); len(got) != 1 {
			t.Errorf("changes: %v", got)
		}

		time.Sleep(333 * time.Millisecond)
		w.wakes <- m1
		w.wantCount("at the moment of the wake", m1, 1)
		if got := w.asked(m1); len(got) != 1 || got[0].slo != slo || !got[0].at.Equal(time.Now()) {
			t.Errorf("woken by %v, want one call, now %v", got, time.Now())
		}
		for range 5 {
			w.wakes <- m1
			time.Sleep(time.Second)
		}
		w.wantCount("woken again and again", m1, 1)
		time.Sleep(50 * time.Second)
		w.wantCount("55 s after the wake", m1, 1)
		time.Sleep(12 * time.Second)
		w.wantCount("67 s after the wake", m1, 0)
		w.wakes <- serving.ModelID{Model: "unknown", Version: "1"}
		w.wakes <- m1
		w.wantCount("woken once more", m1, 1)
	})
}

// TestWakeByDemand has no wakes: the demand of a second at zero is enough.
func TestWakeByDemand(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 5}, 0)
		w.apply(app("m"))
		w.lead(func(c *scheduler.Config) { c.Wakes, c.Hints = nil, nil })
		time.Sleep(time.Minute)
		w.wantCount("without queries", m1, 0)
		w.setLoad(m1, steady(1))
		time.Sleep(2 * time.Second)
		w.wantCount("with queries", m1, 1)
	})
}

// TestSlowStart wakes a version whose replica takes longer to start than the idle
// time; it is not taken away before it could serve.
func TestSlowStart(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 5}, 0)
		w.apply(app("m"))
		w.start = 3 * time.Minute
		w.lead()
		time.Sleep(10 * time.Second)
		w.wakes <- m1
		time.Sleep(3*time.Minute + 55*time.Second)
		w.wantCount("just started", m1, 1)
		time.Sleep(10 * time.Second)
		w.wantCount("idle for as long as it may be", m1, 0)
	})
}

// TestUnknownDemand takes away what is known in two ways, and holds on to counts.
func TestUnknownDemand(t *testing.T) {
	for name, lose := range map[string]func(w *world){
		"the reader fails":   func(w *world) { w.deaf = errAway },
		"no gateway reports": func(w *world) { w.mute = time.Now() },
		"nobody can list":    func(w *world) { w.lists = errAway },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				w.deployed(m1, &serving.ScaleSpec{Max: 50}, 8)
				w.deployed(serving.ModelID{Model: "z", Version: "1"}, &serving.ScaleSpec{Max: 5}, 0)
				w.apply(app("m"))
				w.setLoad(m1, steady(2000))
				w.lead()
				time.Sleep(2 * time.Minute)
				w.wantCount("with queries", m1, 8)
				w.lock(func() { lose(w) })
				time.Sleep(5 * time.Second)
				w.setLoad(m1, steady(0))
				time.Sleep(10 * time.Minute)
				w.wantCount("in the dark", m1, 8)
				if !w.mute.IsZero() {
					w.lock(func() { w.mute, w.unmute = time.Time{}, time.Now() })
					time.Sleep(20 * time.Second)
					w.wantCount("known for less than the idle time", m1, 8)
				}
				w.lock(func() { w.deaf, w.lists = nil, nil })
				time.Sleep(3 * time.Minute)
				w.wantCount("known to be idle", m1, 0)
			})
		})
	}
}

// TestWakeInTheDark wakes a version while its demand is unknown.
func TestWakeInTheDark(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 5}, 0)
		w.apply(app("m"))
		w.deaf = errAway
		w.lead()
		time.Sleep(time.Minute)
		w.wakes <- m1
		w.wantCount("woken", m1, 1)
		time.Sleep(time.Hour)
		w.wantCount("an hour later, still in the dark", m1, 1)
	})
}

// TestMinIsStarted registers a version that is to have replicas.
func TestMinIsStarted(t *testing.T) {
	in(t, func(w *world) {
		w.lead()
		time.Sleep(3333 * time.Millisecond)
		w.apply(app(), version(m1, &serving.ScaleSpec{Min: 2, Max: 5}, 0), version(serving.ModelID{Model: "n", Version: "1"}, nil, 3))
		w.wantCount("at once", m1, 2)
		w.wantCount("at once", serving.ModelID{Model: "n", Version: "1"}, 3)
		time.Sleep(2 * time.Second)
		w.lock(func() {
			if m := w.cat.Models["m"]; m.Serving != "1" {
				t.Errorf("%+v, want version 1 to serve", m)
			}
		})
		time.Sleep(5 * time.Minute)
		w.wantCount("later", m1, 2)
		w.apply(catalog.SetScale{ID: m1, Scale: &serving.ScaleSpec{Min: 4, Max: 5}})
		w.wantCount("with a greater min", m1, 4)
		time.Sleep(2 * time.Second)
		w.apply(catalog.SetPin{ID: m1, Pin: &serving.Pin{Count: 7, Until: time.Now().Add(time.Minute)}})
		w.wantCount("pinned", m1, 7)
		time.Sleep(58 * time.Second)
		w.wantCount("still pinned", m1, 7)
		time.Sleep(3 * time.Second)
		w.wantCount("no longer pinned", m1, 5)
	})
}
