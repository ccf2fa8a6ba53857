package window

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

var (
	begin = time.Unix(1_700_000_000, 0).UTC()
	m1    = serving.ModelID{Model: "m", Version: "1"}
	m2    = serving.ModelID{Model: "m", Version: "2"}
)

// rig has gateways report, and a Windows take that in, second by second.
type rig struct {
	t        *testing.T
	w        *Windows
	now      time.Time
	pending  []serving.DemandReport
	arrivals map[string]uint64 // of m1 in a second, by living gateway
}

func newRig(t *testing.T) *rig {
	return &rig{t: t, w: New(), now: begin, arrivals: map[string]uint64{}}
}

func report(gateway string, second time.Time, arrivals uint64) serving.DemandReport {
	r := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: gateway}, Second: second}
	if arrivals > 0 {
		r.Demands = []serving.Demand{{ModelID: m1, Arrivals: arrivals, Concurrency: time.Duration(arrivals) * time.Second / 10}}
	}
	return r
}

// run lets seconds pass, with a look 200 ms after each.
func (r *rig) run(seconds int) {
	for range seconds {
		r.pass()
		r.take()
	}
}

// pass lets a second pass that is reported.
func (r *rig) pass() {
	for name, n := range r.arrivals {
		r.pending = append(r.pending, report(name, r.now, n))
	}
	r.now = r.now.Add(time.Second)
}

// take looks at what is reported.
func (r *rig) take() {
	at := r.now.Add(200 * time.Millisecond)
	r.w.Take(r.pending, r.w.From(at), at)
	r.pending = nil
}

func (r *rig) demand(id serving.ModelID) Demand {
	return r.w.Demand(id, r.now.Add(200*time.Millisecond))
}

func (r *rig) want(when string, id serving.ModelID, want Demand) {
	r.t.Helper()
	if got := r.demand(id); got != want {
		r.t.Errorf("%s:\n got %+v\nwant %+v", when, got, want)
	}
}

// wantUnknown: an empty string for known.
func (r *rig) wantUnknown(when, want string) {
	r.t.Helper()
	if got := r.demand(m1).Unknown; got != want {
		r.t.Errorf("%s: unknown is %q, want %q", when, got, want)
	}
}

func mean(seconds int, rate float64) Mean {
	return Mean{Seconds: seconds, Rate: rate, InFlight: rate / 10}
}

func TestWindows(t *testing.T) {
	r := newRig(t)
	r.want("before anything", m1, Demand{Unknown: "no gateway has reported demand yet"})
	r.take()
	r.want("before anybody reports", m1, Demand{Unknown: "no gateway has reported demand yet"})
	r.arrivals["a"], r.arrivals["b"] = 40, 60
	r.run(1)
	r.want("after a second", m1, Demand{Unknown: "of the last 6 s only 1 are known", Stable: mean(1, 100), Panic: mean(1, 100), Burst: mean(1, 100)})
	r.run(2)
	r.want("after three", m1, Demand{Stable: mean(3, 100), Panic: mean(3, 100), Burst: mean(2, 100), Peak: mean(3, 100)})
	r.run(200)
	r.want("when all is full", m1, Demand{Stable: mean(60, 100), Panic: mean(6, 100), Burst: mean(2, 100), Peak: mean(6, 100)})
	if q := r.demand(m2); q.Quiet != 203*time.Second || q.Stable != (Mean{Seconds: 60}) {
		t.Errorf("a version that nobody asks: %+v", q)
	}
	r.arrivals["a"] = 640
	r.run(3)
	r.want("after a step", m1, Demand{Stable: mean(60, 130), Panic: mean(6, 400), Burst: mean(2, 700), Peak: mean(6, 400)})
	r.arrivals["a"], r.arrivals["b"] = 0, 0
	r.run(30)
	r.want("after queries end", m1, Demand{Stable: mean(60, (27*100+3*700)/60.), Panic: mean(6, 0), Burst: mean(2, 0), Peak: mean(6, 400), Quiet: 30 * time.Second})
	r.run(170)
	if d := r.demand(m1); d.Quiet < 127*time.Second || r.w.Has(m1) {
		t.Errorf("long after: %+v, still there: %t", d, r.w.Has(m1))
	}
}

// TestDiverted has queries that went to another model: they are asked for as the others are.
func TestDiverted(t *testing.T) {
	r := newRig(t)
	for range 60 {
		one := report("a", r.now, 100)
		one.Demands[0].Diverted = 60 // 40 were in flight, for 4 s in all
		one.Demands[0].Concurrency = 4 * time.Second
		r.pending = append(r.pending, one)
		r.now = r.now.Add(time.Second)
		r.take()
	}
	want := Mean{Seconds: 60, Rate: 100, Diverted: 60, InFlight: 10}
	if got := r.demand(m1).Stable; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	all := report("a", r.now, 100)
	all.Demands[0].Diverted = 100
	r.pending = append(r.pending, all)
	r.now = r.now.Add(time.Second)
	r.take()
	if got := r.demand(m1).Stable; got.Rate != 100 || math.Abs(got.InFlight-10) > 0.1 {
		t.Errorf("with a second in which all were: %+v", got)
	}
}

// TestKilledGateway has one of two fall silent: nothing is unknown for it, and its
// silence costs 5 s.
func TestKilledGateway(t *testing.T) {
	r := newRig(t)
	r.arrivals["a"], r.arrivals["b"] = 100, 100
	r.run(100)
	delete(r.arrivals, "b")
	for range 4 {
		r.run(1)
		r.wantUnknown("while it may be late", "")
		if d := r.demand(m1); d.Burst != mean(2, 200) {
			t.Errorf("while it may be late: %+v", d)
		}
	}
	r.run(1)
	r.wantUnknown("given up", "")
	if d := r.demand(m1); d.Burst != mean(2, 100) {
		t.Errorf("given up: %+v", d)
	}
}

// TestGatewayThatLeaves says so, and is not waited for.
func TestGatewayThatLeaves(t *testing.T) {
	r := newRig(t)
	r.arrivals["a"], r.arrivals["b"] = 100, 100
	r.run(100)
	last := report("b", r.now, 100)
	last.Last = true
	r.pending = append(r.pending, last)
	delete(r.arrivals, "b")
	r.run(1)
	r.want("its last second", m1, Demand{Stable: mean(60, 200), Panic: mean(6, 200), Burst: mean(2, 200), Peak: mean(6, 200)})
	r.run(1)
	if d := r.demand(m1); d.Burst != mean(2, 150) {
		t.Errorf("the second after: %+v", d)
	}
}

// TestNewGateway is waited for from its first report on.
func TestNewGateway(t *testing.T) {
	r := newRig(t)
	r.arrivals["a"] = 100
	r.run(100)
	r.arrivals["b"] = 300
	r.run(1)
	if d := r.demand(m1); d.Burst != mean(2, 250) || d.Unknown != "" {
		t.Errorf("its first second: %+v", d)
	}
	r.pass()
	late := r.pending
	r.pending = slices.DeleteFunc(slices.Clone(late), func(r serving.DemandReport) bool { return r.Source.Name == "b" })
	r.take()
	if d := r.demand(m1); d.Burst != mean(2, 250) {
		t.Errorf("a second that it has not reported: %+v", d)
	}
	r.pending = late
	r.take()
	if d := r.demand(m1); d.Burst != mean(2, 400) {
		t.Errorf("once it has: %+v", d)
	}
}

// TestAllSilent makes the demand unknown after 5 s, and keeps it so.
func TestAllSilent(t *testing.T) {
	r := newRig(t)
	r.arrivals["a"], r.arrivals["b"] = 100, 100
	r.run(100)
	clear(r.arrivals)
	r.run(4)
	r.wantUnknown("for a moment", "")
	r.run(1)
	r.wantUnknown("then", "the last second that all gateways reported is 5 s ago")
	r.run(300)
	r.wantUnknown("for long", "the last second that all gateways reported is 305 s ago")
	if d := r.demand(m1); d.Quiet != 0 {
		t.Errorf("silence is taken for quiet: %+v", d)
	}
	r.arrivals["c"] = 0
	r.run(10)
	if d := r.demand(m1); d.Unknown != "" || d.Quiet != 10*time.Second || d.Stable.Seconds != 10 {
		t.Errorf("10 s after another gateway came: %+v", d)
	}
}

// TestOutage keeps all reports back for a minute. Then those of an idle gateway come
// first, and what it says is not taken for everything.
func TestOutage(t *testing.T) {
	r := newRig(t)
	r.arrivals["idle"], r.arrivals["busy"] = 0, 100
	r.run(100)
	for range 60 {
		r.pass()
	}
	held := map[string][]serving.DemandReport{}
	for _, p := range r.pending {
		held[p.Source.Name] = append(held[p.Source.Name], p)
	}
	r.pending = held["idle"]
	for range 8 {
		r.take()
		if d := r.demand(m1); d.Unknown == "" || d.Quiet > 0 {
			t.Errorf("by one gateway's word: %+v", d)
		}
		r.pass()
		held["busy"] = append(held["busy"], r.pending...)
		r.pending = slices.DeleteFunc(r.pending, func(r serving.DemandReport) bool { return r.Source.Name == "busy" })
	}
	r.pending = append(r.pending, held["busy"]...)
	r.take()
	r.want("when both are back", m1, Demand{Stable: mean(60, 100), Panic: mean(6, 100), Burst: mean(2, 100), Peak: mean(6, 100)})
}

// TestLostReport is a hole in what is known: it is looked for, but not waited for,
// and ends no quiet time early.
func TestLostReport(t *testing.T) {
	r := newRig(t)
	r.arrivals["a"] = 0
	r.run(100)
	r.pass()
	r.pending = nil // lost
	hole := r.now.Add(-time.Second)
	r.run(20)
	if d := r.demand(m1); d.Unknown != "" || d.Stable.Seconds != 59 || d.Quiet != 20*time.Second {
		t.Errorf("20 s after the hole: %+v", d)
	}
	if from := r.w.From(r.now); !from.Equal(hole) {
		t.Errorf("reads from %v, want from the hole at %v", from, hole)
	}
	r.run(20)
	if from := r.w.From(r.now); !from.Equal(r.now.Add(-overlap * time.Second)) {
		t.Errorf("reads from %v at %v, long after the hole", from, r.now)
	}
	r.run(200)
	if d := r.demand(m1); d.Quiet != 220*time.Second+20*time.Second {
		t.Errorf("240 s after the hole: %+v", d)
	}
}

// TestReadAgain takes in the same reports as often as one likes.
func TestReadAgain(t *testing.T) {
	r := newRig(t)
	r.arrivals["a"] = 10
	var all []serving.DemandReport
	for range 70 {
		r.pass()
		all = append(all, r.pending...)
		r.pending = slices.Clone(all)
		r.take()
	}
	r.want("every report many times", m1, Demand{Stable: mean(60, 10), Panic: mean(6, 10), Burst: mean(2, 10), Peak: mean(6, 10)})
}

// TestProfiles are averaged over the sidecars that have one to show.
func TestProfiles(t *testing.T) {
	r := newRig(t)
	r.arrivals["a"] = 0
	side := func(name string, base, each time.Duration) {
		r.pending = append(r.pending, serving.DemandReport{
			Source: serving.DemandSource{Role: "sidecar", Name: name}, Second: r.now,
			Demands: []serving.Demand{{ModelID: m1, Profile: serving.LatencyLine{Base: base, PerInput: each}}}})
	}
	side("x", 10, 1)
	side("y", 20, 3)
	side("z", 0, 0)
	r.run(3)
	if p := r.demand(m1).Profile; p != (serving.LatencyLine{Base: 15, PerInput: 2}) {
		t.Errorf("profile %+v", p)
	}
	side("x", 40, 5)
	r.run(50)
	if p := r.demand(m1).Profile; p != (serving.LatencyLine{Base: 30, PerInput: 4}) {
		t.Errorf("profile %+v after a newer one", p)
	}
	r.run(11)
	if p := r.demand(m1).Profile; p != (serving.LatencyLine{Base: 40, PerInput: 5}) {
		t.Errorf("profile %+v without the one that is old", p)
	}
}

// TestLongQueries are not quiet, though nobody arrives.
func TestLongQueries(t *testing.T) {
	r := newRig(t)
	r.arrivals["a"] = 0
	r.run(30)
	busy := report("b", r.now, 0)
	busy.Demands = []serving.Demand{{ModelID: m1, Concurrency: time.Second}}
	r.pending = append(r.pending, busy)
	r.run(7)
	if d := r.demand(m1); d.Quiet != 6*time.Second || d.Unknown != "" {
		t.Errorf("%+v", d)
	}
}

// TestAgainstHistory holds the windows against a plain reading of everything that
// was ever reported, whatever comes late, twice or never.
func TestAgainstHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New()
		history := map[int64]map[string]uint64{} // what was taken, by second and gateway
		now := begin.Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "ms")) * time.Millisecond)
		var late []serving.DemandReport
		for range rapid.IntRange(1, 250).Draw(t, "seconds") {
			second := now.Truncate(time.Second)
			now = now.Add(time.Second)
			take := late
			late = nil
			for _, name := range []string{"a", "b", "c"} {
				r := report(name, second, rapid.Uint64Range(0, 5).Draw(t, "arrivals"))
				switch rapid.IntRange(0, 9).Draw(t, "fate") {
				case 0:
				case 1, 2:
					late = append(late, r)
				case 3:
					take, late = append(take, r), append(late, r)
				default:
					take = append(take, r)
				}
			}
			w.Take(take, w.From(now), now)
			for _, r := range take {
				s := r.Second.Unix()
				if history[s] == nil {
					history[s] = map[string]uint64{}
				}
				history[s][r.Source.Name] = 0
				for _, d := range r.Demands {
					history[s][r.Source.Name] = d.Arrivals
				}
			}
			checkHistory(t, w, history, now)
		}
	})
}

func checkHistory(t *rapid.T, w *Windows, history map[int64]map[string]uint64, now time.Time) {
	d := w.Demand(m1, now)
	if w.anchor == 0 {
		return
	}
	sum, known, quiet := uint64(0), 0, true
	for s := w.anchor + 1; s <= w.newest; s++ {
		for _, n := range history[s] {
			quiet = quiet && n == 0 // seen, though not yet by all
		}
	}
	for s := w.anchor; s > w.anchor-60; s-- {
		complete := len(history[s]) > 0
		for name, g := range w.gateways {
			if _, ok := history[s][name]; !ok && g.expected(s) {
				complete = false
			}
		}
		if complete != w.isKnown(s) {
			t.Fatalf("second %d: known %t, want %t", s-begin.Unix(), w.isKnown(s), complete)
		}
		arrived := uint64(0)
		for _, n := range history[s] {
			arrived += n
		}
		quiet = quiet && complete && arrived == 0
		if age := w.anchor - s + 1; quiet != (d.Quiet >= time.Duration(age)*time.Second) && s >= w.began {
			t.Fatalf("quiet for %v, at second %d of it %t", d.Quiet, age, quiet)
		}
		if complete {
			known++
			sum += arrived
		}
	}
	if d.Stable.Seconds != known || math.Abs(d.Stable.Rate*float64(known)-float64(sum)) > 1e-6 {
		t.Fatalf("stable %+v, want %d in %d known seconds", d.Stable, sum, known)
	}
	if d.Peak.Rate < d.Panic.Rate && 2*d.Panic.Seconds >= 6 {
		t.Fatalf("peak %+v below panic %+v", d.Peak, d.Panic)
	}
}
