package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"

	"pgregory.net/rapid"
)

const slo = 100 * time.Millisecond

// asker asks at a rate, as an app of a weight.
type asker struct {
	app      string
	priority int
	weight   float64
	rate     float64 // asks a second
	owed     float64
	allowed  int
}

func newAsker(name string, weight, rate float64) *asker {
	return &asker{app: name, weight: weight, rate: rate}
}

// shortage is a version that bears so many asks a second.
type shortage struct {
	Quota    Quota
	capacity float64
	now      time.Time
	queue    float64 // asks that wait
}

func newShortage(capacity float64) *shortage {
	return &shortage{capacity: capacity, now: time.Unix(1e9, 0)}
}

// run lets the askers ask for a time, a millisecond at a time.
func (s *shortage) run(d time.Duration, askers ...*asker) {
	for range d / time.Millisecond {
		s.now = s.now.Add(time.Millisecond)
		s.queue = max(0, s.queue-s.capacity/1000)
		for _, a := range askers {
			for a.owed += a.rate / 1000; a.owed >= 1; a.owed-- {
				wait := time.Duration(s.queue / s.capacity * float64(time.Second))
				if s.Quota.Allow(serving.Class{App: a.app, Priority: a.priority, Weight: a.weight}, wait, slo, s.now) {
					a.allowed++
					s.queue++
				}
			}
		}
	}
}

func TestNoQuotaWithoutNeed(t *testing.T) {
	s, a := newShortage(1000), newAsker("a", 1, 900)
	s.run(5*time.Second, a)
	if a.allowed < 4499 || s.Quota.short.Load() {
		t.Errorf("%d of 4500 allowed, short %v", a.allowed, s.Quota.short.Load())
	}
}

// Under lasting overload the quota finds the capacity, and queues stay short.
func TestTheQuotaFindsTheCapacity(t *testing.T) {
	for _, capacity := range []float64{50, 1000, 5000} {
		s, a := newShortage(capacity), newAsker("a", 1, 3*capacity)
		s.run(10*time.Second, a)
		a.allowed = 0
		s.run(10*time.Second, a)
		if rate := float64(a.allowed) / 10; rate < 0.7*capacity || rate > 1.1*capacity {
			t.Errorf("%.0f a second of a capacity of %.0f", rate, capacity)
		}
		if wait := s.queue / s.capacity; wait > slo.Seconds() {
			t.Errorf("with a capacity of %.0f, %.3f s wait", capacity, wait)
		}
	}
}

// TestTheQuotaIsFair holds shares against weighted max-min fairness: who asks for less
// than its share gets all of it, and the others share the rest by their weights.
func TestTheQuotaIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShortage(2000)
		modest := newAsker("modest", 1, float64(rapid.IntRange(10, 60).Draw(t, "modest")))
		askers := []*asker{modest}
		for i := range rapid.IntRange(2, 4).Draw(t, "greedy") {
			weight := float64(rapid.IntRange(1, 4).Draw(t, "weight"))
			askers = append(askers, newAsker(fmt.Sprint(i), weight, 4000))
		}
		s.run(2*time.Second, askers...)
		for _, a := range askers {
			a.allowed = 0
		}
		s.run(2*time.Second, askers...)
		if least := 0.95 * 2 * modest.rate; float64(modest.allowed) < least {
			t.Errorf("%d allowed to who asks for less than its share, want %.0f", modest.allowed, least)
		}
		first := float64(askers[1].allowed) / askers[1].weight
		for _, a := range askers[2:] {
			if share := float64(a.allowed) / a.weight; share < 0.9*first || share > 1.1*first {
				t.Errorf("%.0f for a unit of weight, and %.0f for another", first, share)
			}
		}
	})
}

func TestTheQuotaEnds(t *testing.T) {
	s, a := newShortage(1000), newAsker("a", 1, 3000)
	s.run(5*time.Second, a)
	if !s.Quota.short.Load() {
		t.Fatal("no quota at three times the capacity")
	}
	a.rate = 100
	s.run(5*time.Second, a)
	if s.Quota.short.Load() || s.Quota.apps != nil {
		t.Error("the quota goes on though there is no need")
	}
	s.run(time.Second, newAsker("b", 1, 3000)) // and begins again
	if !s.Quota.short.Load() {
		t.Error("no second quota")
	}
}

// While a quota still holds somebody back it does not end: all would come at once.
func TestTheQuotaDoesNotEndWhileItBites(t *testing.T) {
	s, a := newShortage(1000), newAsker("a", 1, 20_000)
	s.run(3*time.Second, a)
	s.capacity = 1e6 // a hundred replicas have come
	ended := false
	for range 100 {
		before := a.allowed
		s.run(100*time.Millisecond, a)
		if ended = !s.Quota.short.Load(); ended {
			if got := a.allowed - before; got < 1990 {
				t.Errorf("it ended while %d of 2000 were allowed", got)
			}
			break
		}
	}
	if !ended {
		t.Error("it did not end in 10 s")
	}
}

func TestTheQuotaIsBounded(t *testing.T) {
	r, now := &Quota{}, time.Unix(1e9, 0)
	r.Refused(now)
	for i := range 2 * mostQuotas {
		r.Allow(serving.Class{App: fmt.Sprint(i), Weight: 1}, 0, slo, now)
	}
	if len(r.apps) != mostQuotas {
		t.Errorf("%d apps in one quota", len(r.apps))
	}
	for range 100 { // those beyond do not keep it up
		now = now.Add(quotaEvery)
		r.Allow(serving.Class{App: "late", Weight: 1}, 0, slo, now)
	}
	if r.short.Load() {
		t.Error("it does not end")
	}
}

func BenchmarkQuota(b *testing.B) {
	now := time.Now()
	b.Run("calm", func(b *testing.B) {
		var r Quota
		b.ReportAllocs()
		for b.Loop() {
			r.Allow(serving.Class{App: "a", Weight: 1}, 0, slo, now)
		}
	})
	b.Run("short", func(b *testing.B) {
		var r Quota
		b.ReportAllocs()
		for b.Loop() {
			r.Allow(serving.Class{App: "a", Weight: 1}, slo, slo, now)
		}
	})
}

// A lower priority gets what a higher one leaves, and all of that.
func TestTheQuotaOfPriorities(t *testing.T) {
	for _, above := range []float64{100, 600, 4000} {
		s, high, low := newShortage(1000), newAsker("high", 1, above), newAsker("low", 1, 4000)
		low.priority = 1
		s.run(10*time.Second, high, low)
		high.allowed, low.allowed = 0, 0
		s.run(10*time.Second, high, low)
		first, rest := float64(high.allowed)/10, float64(low.allowed)/10
		if first < 0.7*min(above, 1000) || above < 1000 && first < 0.95*above {
			t.Errorf("%.0f a second of the %.0f that it asks are allowed to the higher priority", first, above)
		}
		if left := max(1000-above, 0); rest < 0.6*left || rest > 1.1*left+20 {
			t.Errorf("%.0f a second are allowed to the lower priority, of %.0f that are left", rest, left)
		}
	}
}
