package batch

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/sidecar/queue"
)

// warm is a profile that has had the first batch, which does not count.
func warm() *Profile {
	p := NewProfile()
	p.Observe(queue.Load{N: 1}, time.Minute, time.Now())
	return p
}

// feed observes batches of the given sizes.
func feed(p *Profile, took func(int) time.Duration, sizes ...int) {
	now := time.Now()
	for _, n := range sizes {
		p.Observe(queue.Load{N: n}, took(n), now)
	}
}

func near(got, want time.Duration, share float64) bool {
	return math.Abs(float64(got-want)) <= share*float64(want)
}

func TestProfileIgnoresTheFirstCall(t *testing.T) {
	p := NewProfile()
	if p.Observe(queue.Load{N: 4}, time.Minute, time.Now()) || *p.Line() != (Line{}) {
		t.Fatalf("the first call left %+v", p.Line())
	}
	if !p.Observe(queue.Load{N: 4}, ms, time.Now()) || !near(p.Line().Took(4), ms, 0.001) {
		t.Errorf("after the second call of 1ms: %v", p.Line().Took(4))
	}
}

func TestProfileFindsTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := linear(rapid.Float64Range(0.1, 20).Draw(t, "base"), rapid.Float64Range(0, 2).Draw(t, "each"))
		sizes := rapid.SliceOfN(rapid.IntRange(1, 64), 30, 60).Draw(t, "sizes")
		p := warm()
		feed(p, took, append(sizes, 1, 64, 1, 64)...)
		for _, n := range []int{1, 10, 64, 128} {
			// The prior pulls the slope a little, of which small batches see most.
			if got := p.Line().Took(float64(n)); (got - took(n)).Abs() > took(n)/20+took(64)/500 {
				t.Fatalf("a batch of %d is thought to take %v, it takes %v", n, got, took(n))
			}
		}
	})
}

func TestProfileOfOneSize(t *testing.T) {
	p := warm()
	for range 50 {
		feed(p, linear(8, 0), 16)
	}
	line := p.Line()
	if !near(line.Took(16), 8*ms, 0.001) {
		t.Errorf("a batch of 16 is thought to take %v, it always took 8ms", line.Took(16))
	}
	// Between flat and proportional: a larger or smaller size must stay worth a try.
	if one, double := line.Took(1), line.Took(32); one < 6*ms || one > 7*ms || double < 9*ms || double > 11*ms {
		t.Errorf("1 is thought to take %v and 32 %v", one, double)
	}
}

func TestProfileBearsNoise(t *testing.T) {
	took, _ := noisy(2, 0.1, 0.3)
	r := rand.New(rand.NewPCG(1, 2))
	p := warm()
	worst := 1.0
	for range 1000 {
		feed(p, took, 1+r.IntN(64))
		mean := float64(linear(2, 0.1)(32)) * math.Exp(0.3*0.3/2)
		ratio := float64(p.Line().Took(32)) / mean
		worst = max(worst, ratio, 1/ratio)
	}
	if worst > 1.6 {
		t.Errorf("the estimate was off by a factor of %.2f", worst)
	}
}

func TestProfileIsSoundWhateverItSees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := warm()
		now := time.Now()
		for range rapid.IntRange(0, 40).Draw(t, "batches") {
			n := rapid.IntRange(1, 4096).Draw(t, "n")
			load := queue.Load{N: n, Bytes: n * rapid.SampledFrom([]int{0, 1, 1000, 64 << 20}).Draw(t, "bytes")}
			p.Observe(load, time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "took")), now)
		}
		line := p.Line()
		if line.Slope < 0 || line.Base < -1e-9 || line.Mean < 0 || math.IsNaN(line.Slope+line.Base+line.Dev+line.Mean) {
			t.Fatalf("%+v", line)
		}
		within := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "within"))
		n := line.SizeWithin(within)
		if n < 1 || n > Unlimited {
			t.Fatalf("SizeWithin(%v) = %d of %+v", within, n, line)
		}
		if n > 1 && line.Took(float64(n)) > within+time.Microsecond {
			t.Fatalf("%d take %v, more than %v", n, line.Took(float64(n)), within)
		}
		if n < Unlimited && line.Took(float64(n+1)) < within-time.Microsecond {
			t.Fatalf("%d take %v, within %v, and SizeWithin says %d", n+1, line.Took(float64(n+1)), within, n)
		}
	})
}

func TestProfileBearsAnOutlier(t *testing.T) {
	p := warm()
	for range 50 {
		feed(p, linear(2, 0), 8)
	}
	feed(p, linear(5000, 0), 8)
	if got := p.Line().Took(8); got > 3*ms {
		t.Errorf("one batch of 5s brought the estimate from 2ms to %v", got)
	}
	for range 20 {
		feed(p, linear(2, 0), 8)
	}
	if got := p.Line().Took(8); !near(got, 2*ms, 0.1) {
		t.Errorf("20 batches later it is at %v", got)
	}
}

func TestProfileFollowsTheModel(t *testing.T) {
	for _, c := range []struct {
		name    string
		factor  float64
		batches int
	}{
		{"much slower", 100, 3},
		{"slower", 3, 60},
		{"faster", 1. / 3, 60},
		{"much faster", 0.01, 3},
	} {
		p := warm()
		for range 100 {
			feed(p, linear(10, 1), 4, 8, 16)
		}
		for range c.batches {
			feed(p, linear(10*c.factor, c.factor), 8)
		}
		if got, want := p.Line().Took(8), linear(10*c.factor, c.factor)(8); !near(got, want, 0.15) {
			t.Errorf("%s: after %d batches of %v it is at %v", c.name, c.batches, want, got)
		}
	}
}

func TestAnOldOrContradictedLineIsNotBelieved(t *testing.T) {
	p, now := warm(), time.Now()
	if p.Line().Fresh(now) {
		t.Error("a line that knows nothing is fresh")
	}
	observe := func(took time.Duration) *Line {
		p.Observe(queue.Load{N: 8}, took, now)
		return p.Line()
	}
	if line := observe(time.Second); !line.Fresh(now.Add(profileFresh-1)) || line.Fresh(now.Add(profileFresh)) {
		t.Error("a line is to be believed for 250ms")
	}
	// The model is fast again: each batch must be tried at once, not after 250ms.
	for range profileChange - 1 {
		if line := observe(ms); line.Fresh(now) {
			t.Fatalf("a line of %v is believed although the last batch took 1ms", line.Took(8))
		}
	}
	if line := observe(ms); !line.Fresh(now) || !near(line.Took(8), ms, 0.01) {
		t.Errorf("after three fast batches the line is %v", line.Took(8))
	}
}

func TestProfileSizes(t *testing.T) {
	p := warm()
	feed(p, linear(0, 1), 2, 3, 4, 4, 5, 1<<16, 1<<20) // and a minute for the first 1
	want := []SizeStat{
		{1, 1, 1, time.Minute, time.Minute},
		{2, 1, 2, 2 * ms, 2 * ms},
		{4, 3, 11, 11 * ms, 4 * ms},
		{8, 1, 5, 5 * ms, 5 * ms},
		{1 << 16, 2, 1<<16 + 1<<20, (1<<16 + 1<<20) * ms, (1 << 20) * ms},
	}
	got := p.Sizes()
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

func TestAProfileIsReadWhileItLearns(t *testing.T) {
	p := warm()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 1000 {
			feed(p, linear(2, 1), 3)
		}
	})
	for range 1000 {
		if n := p.Line().SizeWithin(100 * ms); n < 1 {
			t.Fatal(n)
		}
		p.Sizes()
	}
	wg.Wait()
}

func BenchmarkProfileObserve(b *testing.B) {
	p, now := NewProfile(), time.Now()
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		p.Observe(queue.Load{N: 1 + i%64}, linear(2, 0.1)(1+i%64), now)
	}
}

// Enough is the least size with nine tenths of the rate of n.
func TestEnough(t *testing.T) {
	for _, l := range []queue.Line{{}, {Slope: 0.01}, {Base: 0.01}, {Slope: 0.0001, Base: 0.002}, {Slope: 0.01, Base: 0.0006}, {Slope: 0.001, Base: 0.001}} {
		rate := func(n int) float64 { return float64(n) / (l.Base + l.Slope*float64(n)) }
		for _, n := range []int{1, 2, 7, 230, Unlimited} {
			got := (&Line{Line: l}).Enough(n, 0.9)
			if l.Took(1) == 0 {
				if got != n {
					t.Errorf("of a line that is not known it is %d of %d", got, n)
				}
				continue
			}
			if got < 1 || got > n || rate(got) < 0.9*rate(n)*(1-1e-9) || got > 1 && rate(got-1) > 0.9*rate(n)*(1+1e-9) {
				t.Errorf("%+v: %d of %d, with %.3f of the rate, and %.3f with one less", l, got, n, rate(got)/rate(n), rate(got-1)/rate(n))
			}
		}
	}
}

// Of models that go by the number of inputs, by their bytes, or by neither, each gets the line that says what it
// takes. Sizes are log-normal with a mean of 1000 bytes.
func TestProfileTakesTheLineThatErrsLess(t *testing.T) {
	for _, c := range []struct {
		name    string
		sigma   float64
		most    int // inputs in a batch
		took    func(queue.Load) float64
		byBytes bool
		off     float64 // the estimate of any batch may be off by that part of a usual one
	}{
		{"by bytes", 1.2, 20, func(l queue.Load) float64 { return 2 + float64(l.Bytes)/1000 }, true, 0.03},
		{"by bytes, one at a time", 1.2, 1, func(l queue.Load) float64 { return 2 + float64(l.Bytes)/1000 }, true, 0.03},
		{"by number", 1.2, 20, func(l queue.Load) float64 { return 2 + float64(l.N) }, false, 0.03},
		{"by both", 1.2, 20, func(l queue.Load) float64 { return 2 + 0.2*float64(l.N) + 0.8*float64(l.Bytes)/1000 }, true, 2},
		{"by neither", 1.2, 20, func(queue.Load) float64 { return 9 }, false, 0.03},
		{"of one size", 0, 20, func(l queue.Load) float64 { return 2 + float64(l.Bytes)/1000 }, false, 0.03},
	} {
		r, p := rand.New(rand.NewPCG(1, 2)), warm()
		draw := func() (l queue.Load) {
			for l.N = range 1 + r.IntN(c.most) {
				l.Bytes += int(1000 * math.Exp(c.sigma*r.NormFloat64()-c.sigma*c.sigma/2))
			}
			l.N++
			return l
		}
		wrong, off := 0, 0.0
		for i := range 1000 {
			l := draw()
			took := time.Duration(c.took(l) * 1e6)
			if i >= 100 {
				line := p.Line()
				if (line.Mean > 0) != c.byBytes {
					wrong++
				}
				off = max(off, math.Abs(float64(line.Took(line.Amount(l))-took))/float64(line.Took(1)))
			}
			p.Observe(l, took, time.Now())
		}
		if wrong > 0 || off > c.off {
			t.Errorf("%s: the wrong line %d times, and off by up to %.3f of what a usual input takes", c.name, wrong, off)
		}
		if mean := p.Line().Mean; c.byBytes && (mean < 700 || mean > 1400) {
			t.Errorf("%s: a usual input is thought to have %.0f bytes, it has 1000", c.name, mean)
		}
	}
}
