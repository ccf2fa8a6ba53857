package scale_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/scheduler/window"
	"github.com/topsail-serving/topsail/serving"
)

func drawDemand(t *rapid.T) window.Demand {
	mean := func(name string, seconds int) window.Mean {
		rate := math.Exp(rapid.Float64Range(-3, 12).Draw(t, name))
		if rapid.IntRange(0, 4).Draw(t, name+" none") == 0 {
			rate = 0
		}
		return window.Mean{Seconds: rapid.IntRange(1, seconds).Draw(t, name+" seconds"), Rate: rate, InFlight: rate / 10}
	}
	d := window.Demand{Stable: mean("stable", 60), Panic: mean("panic", 6), Burst: mean("burst", 2), Peak: mean("peak", 6)}
	d.Quiet = time.Duration(rapid.IntRange(0, 900).Draw(t, "quiet")) * time.Second
	for _, w := range []struct {
		window.Mean
		length time.Duration
	}{{d.Stable, window.Stable}, {d.Peak, window.Stable}, {d.Panic, window.Panic}, {d.Burst, window.Burst}} {
		if w.Rate > 0 {
			d.Quiet = min(d.Quiet, w.length-time.Second)
		}
	}
	if rapid.Bool().Draw(t, "measured") {
		d.Profile = simLine
	}
	if rapid.IntRange(0, 3).Draw(t, "unknown") == 0 {
		d.Unknown = "drawn"
	}
	return d
}

func drawState(t *rapid.T) scale.State {
	at := func(name string) time.Time {
		return now.Add(time.Duration(rapid.IntRange(-1200, 60).Draw(t, name)) * time.Second)
	}
	roles := []scale.Role{"", scale.Current, scale.Rollout, scale.Serving, scale.Old}
	return scale.State{Role: rapid.SampledFrom(roles).Draw(t, "was"), Changed: at("changed"), Active: at("active"), Surge: at("surge"), Keep: at("keep"), Kept: "panic", Old: at("old")}
}

func drawInput(t *rapid.T) scale.Input {
	in := input(rapid.IntRange(0, 120).Draw(t, "count"), drawDemand(t))
	spec := in.Version.Scale
	spec.Min = rapid.IntRange(0, 5).Draw(t, "min")
	spec.Max = rapid.IntRange(max(1, spec.Min), 100).Draw(t, "max")
	spec.StepUp = rapid.SampledFrom([]float64{0, 1.1, 2}).Draw(t, "step up")
	spec.StepDown = rapid.SampledFrom([]float64{0, 1.1, 10}).Draw(t, "step down")
	spec.CooldownUp = serving.Duration(rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "cooldown up"))
	in.Role = rapid.SampledFrom([]scale.Role{scale.Current, scale.Rollout, scale.Serving, scale.Old}).Draw(t, "role")
	in.Ready = rapid.IntRange(0, in.Job.Count).Draw(t, "ready")
	in.Behind = rapid.IntRange(0, 100).Draw(t, "behind")
	in.Settled = rapid.Bool().Draw(t, "settled")
	in.Woken = now.Add(-time.Duration(rapid.IntRange(0, 100).Draw(t, "woken")) * time.Second)
	return in
}

// TestBounds holds every decision within what the version's people want.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		d, _ := scale.Decide(drawState(t), in)
		spec, count := in.Version.Scale, in.Job.Count
		lo, hi := spec.Min, spec.Max
		if in.Role == scale.Old {
			lo, hi = 0, max(hi, count)
		}
		if d.To < lo || d.To > hi {
			t.Fatalf("%s is not within %d and %d", show(d), lo, hi)
		}
		if d.Rule == "" || d.Reason == "" {
			t.Fatalf("%s does not say why", show(d))
		}
		if in.Role == scale.Old && d.To < count && d.To != 0 {
			t.Fatalf("%s takes some replicas of an old version", show(d))
		}
		if in.Role == scale.Rollout && d.To < min(max(1, in.Behind), hi) {
			t.Fatalf("%s is fewer than serve now", show(d))
		}
	})
}

// TestNothingOnTheUnknown scales by nothing but the bounds and wakes.
func TestNothingOnTheUnknown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Demand.Unknown = "drawn"
		state := drawState(t)
		d, _ := scale.Decide(state, in)
		want := in.Job.Count
		if want == 0 && now.Sub(in.Woken) < 10*time.Second && !in.Woken.Before(state.Changed) {
			want = 1
		}
		switch in.Role {
		case scale.Old:
		case scale.Rollout:
			want = max(want, min(max(1, in.Behind), in.Version.Scale.Max))
			fallthrough
		default:
			want = min(max(want, in.Version.Scale.Min), in.Version.Scale.Max)
		}
		if d.To != want {
			t.Fatalf("%s, want %d", show(d), want)
		}
	})
}

// TestMonotone gives more demand, and gets no fewer replicas.
func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, state := drawInput(t), drawState(t)
		less, _ := scale.Decide(state, in)
		factor := rapid.Float64Range(1, 20).Draw(t, "factor")
		for _, m := range []*window.Mean{&in.Demand.Stable, &in.Demand.Panic, &in.Demand.Burst, &in.Demand.Peak} {
			m.Rate = m.Rate*factor + rapid.Float64Range(0, 50).Draw(t, "more")
		}
		in.Demand.Quiet = min(in.Demand.Quiet, time.Second)
		more, _ := scale.Decide(state, in)
		if more.To < less.To {
			t.Fatalf("%s\nwith more demand %s", show(less), show(more))
		}
	})
}

// TestIdempotent decides the same again at once, and nothing more once it is done.
func TestIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		if rapid.Bool().Draw(t, "one step") {
			in.Version.Scale.StepUp, in.Version.Scale.StepDown = 1000, 1000
		}
		first, state := scale.Decide(drawState(t), in)
		again, state := scale.Decide(state, in)
		if first != again {
			t.Fatalf("%s\nand then %s", show(first), show(again))
		}
		in.Job.Count, in.Ready, state.Changed = first.To, first.To, now
		if first.To == first.From || in.Version.Scale.StepUp != 1000 {
			return
		}
		if done, _ := scale.Decide(state, in); done.To < first.To && first.To > first.From || done.To > first.To && first.To < first.From {
			t.Fatalf("%s\nand then back: %s", show(first), show(done))
		}
	})
}

// TestNoOscillation has a steady load with its noise, and what replicas are measured
// to do wavers: the count settles.
func TestNoOscillation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := math.Exp(rapid.Float64Range(0, 9).Draw(t, "log rate"))
		wavers := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		o := sim{
			rate: func(float64) float64 { return rate }, noise: true, seconds: 600, start: 5 * time.Second,
			spec: serving.ScaleSpec{Max: 100}, count: rapid.IntRange(1, 60).Draw(t, "count"),
			seed: wavers.Uint64(),
			decide: func(s scale.State, in scale.Input) (serving.Decision, scale.State) {
				if p := &in.Demand.Profile; p.Base > 0 {
					factor := 1 + 0.04*(2*wavers.Float64()-1)
					p.Base, p.PerInput = time.Duration(float64(p.Base)*factor), time.Duration(float64(p.PerInput)*factor)
				}
				return scale.Decide(s, in)
			},
		}.run()
		late := o.counts[400:]
		ups, downs := 0, 0
		for i := 1; i < len(late); i++ {
			if late[i] > late[i-1] {
				ups++
			}
			if late[i] < late[i-1] {
				downs++
			}
		}
		if ups > 1 || downs > 1 || ups+downs > 1 && late[0] != late[len(late)-1] {
			t.Fatalf("at %.1f queries a second, %d up and %d down: %v", rate, ups, downs, o.counts)
		}
	})
}
