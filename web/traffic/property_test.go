package traffic

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

var epoch = time.Unix(1_700_000_000, 0).UTC()

// counting is a gateway that a test has count, for one app.
type counting struct {
	watch
	tally
	alive float64 // answers of its process that nobody has read yet
	anew  bool    // it has started anew once
}

func newCounting(name string) *counting {
	g := &counting{watch: watch{Target: Target{Role: Gateway, Name: name}}}
	g.restart()
	return g
}

func (g *counting) restart() {
	g.tally = tally{took: histogram{{0.01, 0.1, 0}}}
	g.alive = 0
}

func (g *counting) count(cause serving.Cause, n float64) {
	g.answers[cause] += n
	g.asked += n
	g.took[0].n += n
	g.alive += n
}

// read has the collector look at the gateway.
func (g *counting) read(c *Collector, at time.Time) {
	seen := g.tally
	seen.took = slices.Clone(g.took)
	c.take(&g.watch, look{at: at, tallies: map[string]*tally{"a": &seen}}, nil)
	g.alive = 0
}

// TestNothingIsLostOrMadeUp has gateways count, fail and start anew. What the series
// say in sum is what was counted, but for what a process took with it when it ended, and
// no second says more than what was counted since it was last heard of.
func TestNothingIsLostOrMadeUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Config{})
		var gateways []*counting
		for i := range rapid.IntRange(1, 4).Draw(t, "gateways") {
			g := newCounting(fmt.Sprint("g", i))
			g.count(serving.OK, float64(rapid.IntRange(1e6, 1e7).Draw(t, "before")))
			g.read(c, epoch)
			gateways = append(gateways, g)
		}
		wanted, highest := 0.0, 0.0
		seconds := rapid.IntRange(1, 80).Draw(t, "seconds")
		for s := 1; s <= seconds; s++ {
			second := 0.0
			for _, g := range gateways {
				n := float64(rapid.IntRange(0, 1000).Draw(t, "answers"))
				g.count(serving.Cause(rapid.IntRange(0, causes-1).Draw(t, "cause")), n)
				second += n
				switch rapid.IntRange(0, 9).Draw(t, "fate") {
				case 0: // it cannot be read
				case 1:
					if !g.anew { // after a few answers another time could go unnoticed
						g.restart()
						g.anew = true
					}
				default:
					wanted += g.alive
					g.read(c, epoch.Add(time.Duration(s)*time.Second))
				}
			}
			highest = max(highest, second)
		}
		for _, g := range gateways {
			wanted += g.alive
			g.read(c, epoch.Add(time.Duration(seconds+1)*time.Second))
		}
		for i, window := range []time.Duration{fine, middle, coarse} {
			s := c.apps["a"].over("a", window, epoch.Unix()+int64(seconds)+1)
			got, known := 0.0, 0.0
			ring := &c.apps["a"].series[i]
			for p, rate := range s.Rate {
				if rate == nil {
					continue
				}
				span := 0.0
				for k := range int64(s.Step) / ring.step {
					if n := ring.at(secondsKnown, s.Times[p]/ring.step+k); !math.IsNaN(n) {
						span += n
					}
				}
				if *rate < 0 || *rate > float64(len(gateways))*1000*1.001 {
					t.Fatalf("%v answers a second at the most %v were counted in", *rate, highest)
				}
				if a := s.Attainment[p]; a != nil && (*a < 0 || *a > 1) {
					t.Fatalf("attainment %v", *a)
				}
				got += *rate * span
				known += span
			}
			if math.Abs(got-wanted) > 1e-4*wanted+1e-3 {
				t.Fatalf("window %s: %v answers, %v were counted", window, got, wanted)
			}
			if known != float64(seconds+1) {
				t.Fatalf("window %s: %v seconds are known of %d", window, known, seconds+1)
			}
		}
	})
}

// TestQuantiles compares with the values themselves: no further off than a bucket.
func TestQuantiles(t *testing.T) {
	bounds := []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 200).Draw(t, "values")
		counts := make([]float64, len(bounds)+1)
		for _, v := range values {
			counts[place(bounds, v)]++
		}
		h, _ := histogramOf(bounds, counts)
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		got := h.quantile(q)
		below := 0
		for _, v := range values {
			if v <= got {
				below++
			}
		}
		// All values of the bucket that got lies in may be on either side.
		same := counts[place(bounds, got)]
		if rank := q * float64(len(values)); float64(below)+same < rank || float64(below)-same > rank+1 {
			t.Fatalf("quantile %v of %v is %v, with %d below it", q, values, got, below)
		}
	})
}

func place(bounds []float64, v float64) int {
	for i, b := range bounds {
		if v <= b {
			return i
		}
	}
	return len(bounds)
}

// TestQuantilesByHand looks at cases that can be worked out.
func TestQuantilesByHand(t *testing.T) {
	h := func(counts ...float64) histogram {
		h, _ := histogramOf([]float64{1, 2, 4}, counts)
		return h
	}
	for _, c := range []struct {
		h    histogram
		q    float64
		want float64
	}{
		{h(10, 0, 0, 0), 0.5, 0.5},
		{h(10, 10, 0, 0), 0.75, 1.5},
		{h(0, 0, 10, 0), 0.5, 3},
		{h(10, 0, 10, 0), 1, 4},
		{h(0, 0, 0, 7), 0.5, 4}, // above all bounds
		{h(1, 0, 0, 99), 0.99, 4},
	} {
		if got := c.h.quantile(c.q); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v of %v is %v, want %v", c.q, c.h, got, c.want)
		}
	}
	if got := h(0, 0, 0, 0).quantile(0.5); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
}

// TestWhatIsKeptOfStages: little, and enough for every window.
func TestWhatIsKeptOfStages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var st *stage
		began, now, counted := epoch, epoch, 0.0
		for range rapid.IntRange(1, 300).Draw(t, "looks") {
			next := &stage{read: &sums{ended: map[string]float64{"ok": counted}, batches: counted}}
			next.follow(st, now)
			st = next
			if n := len(st.past); n > 32 {
				t.Fatalf("%d moments are kept", n)
			}
			window := time.Duration(rapid.IntRange(60, 900).Draw(t, "window")) * time.Second
			came, span := st.within(window, now)
			if span < min(window, now.Sub(began)).Seconds() {
				t.Fatalf("of %v only %v s are known", window, span)
			}
			if came.ended["ok"] != came.batches || came.ended["ok"] < 0 || came.ended["ok"] > counted {
				t.Fatalf("%+v of %v", came, counted)
			}
			now = now.Add(time.Duration(rapid.IntRange(1000, 60_000).Draw(t, "pause")) * time.Millisecond)
			counted += float64(rapid.IntRange(0, 5).Draw(t, "inputs"))
		}
	})
}
