package batch

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

const ms = time.Millisecond

// linear is a model that takes base and each for every input, in milliseconds.
func linear(base, each float64) func(n int) time.Duration {
	return func(n int) time.Duration { return time.Duration((base + each*float64(n)) * 1e6) }
}

// saturate runs full batches on a sizer, as under an endless queue.
func saturate(s Sizer, p *Profile, batches int, target time.Duration, took func(n int) time.Duration) (sizes []int) {
	now := time.Now()
	for range batches {
		n := s.Size()
		t := took(n)
		now = now.Add(t)
		p.Observe(queue.Load{N: n}, t, now)
		s.Observe(n, t, target, true)
		sizes = append(sizes, n)
	}
	return sizes
}

func TestAIMDFollowsItsRules(t *testing.T) {
	for _, c := range []struct {
		name string
		from AIMD
		n    int
		took time.Duration
		full bool
		want int
	}{
		{"a full batch with time to spare adds 2", AIMD{size: 10, limit: 99, missed: true}, 10, 89 * ms, true, 12},
		{"within a tenth of the target it holds", AIMD{size: 10, limit: 99, missed: true}, 10, 90 * ms, true, 10},
		{"just below the target it holds", AIMD{size: 10, limit: 99, missed: true}, 10, 100*ms - 1, true, 10},
		{"at the target it takes a tenth off", AIMD{size: 20, limit: 99, missed: true}, 20, 100 * ms, true, 18},
		{"rounded down", AIMD{size: 19, limit: 99, missed: true}, 19, 200 * ms, true, 17},
		{"a miss counts when the batch was not full, too", AIMD{size: 20, limit: 99}, 3, 200 * ms, false, 18},
		{"never below 1", AIMD{size: 1, limit: 99}, 1, 200 * ms, true, 1},
		{"a batch that was not full does not grow", AIMD{size: 10, limit: 99}, 9, 1 * ms, false, 10},
		{"never above the limit", AIMD{size: 98, limit: 99, missed: true}, 98, 1 * ms, true, 99},
		{"before the first miss it doubles", AIMD{size: 10, limit: 99}, 10, 1 * ms, true, 20},
		{"up to the limit", AIMD{size: 10, limit: 12}, 10, 1 * ms, true, 12},
	} {
		c.from.profile = NewProfile()
		c.from.Observe(c.n, c.took, 100*ms, c.full)
		if c.from.Size() != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.from.Size(), c.want)
		}
	}
}

func TestAIMDDoublesOnlyAsFarAsTheProfileBears(t *testing.T) {
	p := NewProfile()
	p.line.Store(&Line{Line: queue.Line{Slope: 0.005, Base: 0.010}}) // 90 ms allow 16
	a := &AIMD{size: 10, limit: 99, profile: p}
	a.Observe(10, 60*ms, 100*ms, true)
	if a.Size() != 16 {
		t.Errorf("from 10 to %d, the profile allows 16", a.Size())
	}
	a.Observe(16, 80*ms, 100*ms, true) // better than the profile says: then 2 more
	if a.Size() != 18 {
		t.Errorf("from 16 to %d, want 18", a.Size())
	}
}

func TestAIMDForgivesAMissAtOne(t *testing.T) {
	a := NewAIMD(99, NewProfile())
	a.Observe(1, time.Second, 100*ms, true)
	for range 4 {
		a.Observe(a.Size(), ms, 100*ms, true)
	}
	if a.Size() < 16 {
		t.Errorf("after a slow first batch it is at %d, as if it could not double", a.Size())
	}
}

// checkBand checks that sizes are within a tenth of those for which the model
// takes between nine tenths of the target and all of it.
func checkBand(t interface{ Fatalf(string, ...any) }, what string, sizes []int, target, base, each float64) {
	low, high := max((0.9*target-base)/each, 1), max((target-base)/each, 1)
	for _, n := range sizes {
		if float64(n) < 0.9*low-2 || float64(n) > 1.1*high+2 {
			t.Fatalf("%s: size %d, want %.0f to %.0f; sizes %v", what, n, low, high, sizes)
		}
	}
}

func TestAIMDConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := rapid.Float64Range(5, 250).Draw(t, "target")
		base := target * rapid.Float64Range(0, 0.8).Draw(t, "base")
		each := (target - base) / rapid.Float64Range(1, 800).Draw(t, "right size")
		p := NewProfile()
		a := NewAIMD(Unlimited, p)
		saturate(a, p, 20, time.Duration(target*1e6), linear(base, each)) // ten doublings, and then some
		checkBand(t, "after 20 batches", saturate(a, p, 100, time.Duration(target*1e6), linear(base, each)), target, base, each)
	})
}

func TestAIMDFollowsTheModel(t *testing.T) {
	const target, base, each = 100, 10, 0.5
	p := NewProfile()
	a := NewAIMD(Unlimited, p)
	saturate(a, p, 20, target*ms, linear(base, each))
	saturate(a, p, 15, target*ms, linear(3*base, 3*each)) // 0.9^12 is below a quarter
	checkBand(t, "three times slower", saturate(a, p, 50, target*ms, linear(3*base, 3*each)), target, 3*base, 3*each)
	saturate(a, p, 60, target*ms, linear(base, each)) // 2 a batch
	checkBand(t, "fast again", saturate(a, p, 50, target*ms, linear(base, each)), target, base, each)
}

func TestNewSizer(t *testing.T) {
	p := NewProfile()
	for _, c := range []struct {
		spec  serving.BatchSpec
		limit int // after a flood of fast, full batches
	}{
		{serving.BatchSpec{}, Unlimited},
		{serving.BatchSpec{Strategy: "aimd", MaxSize: 12}, 12},
		{serving.BatchSpec{Strategy: "quantile", MaxSize: 12}, 12},
		{serving.BatchSpec{Strategy: "quantile"}, Unlimited},
		{serving.BatchSpec{Strategy: "fixed", MaxSize: 12}, 12},
	} {
		s := NewSizer(c.spec, p)
		if first := s.Size(); first != 1 && c.spec.Strategy != "fixed" {
			t.Errorf("%+v starts at %d, want 1", c.spec, first)
		}
		for range 40 {
			s.Observe(s.Size(), time.Microsecond, time.Second, true)
		}
		if s.Size() != c.limit {
			t.Errorf("%+v reaches %d, want %d", c.spec, s.Size(), c.limit)
		}
	}
}

func TestFixedStays(t *testing.T) {
	s := NewSizer(serving.BatchSpec{Strategy: "fixed", MaxSize: 32}, NewProfile())
	saturate(s, NewProfile(), 10, ms, linear(100, 100))
	if s.Size() != 32 {
		t.Errorf("a fixed size went from 32 to %d", s.Size())
	}
}
