package scale_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/scheduler/window"
	"github.com/topsail-serving/topsail/serving"
)

var (
	now = time.Unix(1_700_000_000, 0).UTC()
	id  = serving.ModelID{Model: "m", Version: "1"}
)

// each is what a replica of these tests can do: 19 in 50 ms.
const each = 380.0

// steady is a demand that has been so for a while.
func steady(rate float64) window.Demand {
	m := func(seconds int) window.Mean { return window.Mean{Seconds: seconds, Rate: rate, InFlight: rate / 20} }
	d := window.Demand{Stable: m(60), Panic: m(6), Burst: m(2), Peak: m(6), Profile: simLine}
	if rate == 0 {
		d.Quiet = time.Hour
	}
	return d
}

// short is steady but for the last seconds.
func short(rate, panic, burst float64) window.Demand {
	d := steady(rate)
	d.Panic.Rate, d.Burst.Rate = panic, burst
	d.Peak.Rate = max(rate, panic)
	return d
}

func unknown() window.Demand { return window.Demand{Unknown: "nobody has reported"} }

// input is a current version with count replicas, all ready.
func input(count int, d window.Demand) scale.Input {
	return scale.Input{
		Now: now, Version: &serving.Version{ModelID: id, Scale: &serving.ScaleSpec{Max: 100}}, Role: scale.Current,
		SLO: simSLO, Demand: d, Job: serving.Job{ModelID: id, Index: 1, Count: count}, Ready: count,
	}
}

func show(d serving.Decision) string {
	return fmt.Sprintf("%d to %d by %s, since %s", d.From, d.To, d.Rule, d.Reason)
}

func TestCapacity(t *testing.T) {
	line := func(base, each int) serving.LatencyLine {
		return serving.LatencyLine{Base: time.Duration(base) * time.Millisecond, PerInput: time.Duration(each) * time.Millisecond}
	}
	for _, c := range []struct {
		name string
		line serving.LatencyLine
		slo  time.Duration
		size int
		want float64
	}{
		{"half the SLO", line(12, 2), simSLO, 0, each},
		{"a cap", line(12, 2), simSLO, 4, 4 / 0.020},
		{"a cap beyond it", line(12, 2), simSLO, 64, each},
		{"too slow for half the SLO", line(80, 40), simSLO, 0, 1 / 0.120},
		{"any batch takes as long", line(20, 0), simSLO, 0, 1024 / 0.020},
		{"any batch takes too long", line(80, 0), simSLO, 32, 1 / 0.080},
		{"not measured", line(0, 0), simSLO, 0, 0},
		{"no SLO", line(12, 2), 0, 0, 0},
	} {
		if got := scale.Capacity(c.line, c.slo, c.size); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRules decides once in many situations.
func TestRules(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		name   string
		in     scale.Input
		change func(*scale.Input, *scale.State)
		to     int
		rule   string
		reason string // a part of it
	}{
		{"enough", input(4, steady(1000)), nil, 4, "capacity", "1000 queries/s over 60 s need 3.76 replicas of 380 at 70 %"},
		{"too few", input(3, steady(1000)), nil, 4, "capacity", "need 3.76 replicas"},
		{"what went to another model is asked for", input(3, steady(1000)), func(in *scale.Input, _ *scale.State) { in.Demand.Stable.Diverted = 400 }, 4, "capacity",
			"1000 queries/s over 60 s (400 queries/s could not be answered in time and went to a model ranked after it) need 3.76"},
		{"in the dead band above", input(4, steady(1160)), nil, 4, "capacity", "need 4.36"},
		{"in the dead band below", input(5, steady(1200)), nil, 5, "capacity", "need 4.51"},
		{"too many", input(9, steady(1000)), nil, 4, "capacity", "in the busiest 6 s 3.76"},
		{"a step down is a half", input(40, steady(1000)), nil, 20, "capacity", ""},
		{"starting replicas count", input(8, steady(2000)), func(in *scale.Input, _ *scale.State) { in.Ready = 1 }, 8, "capacity", ""},
		{"max", input(3, steady(100_000)), nil, 100, "max", "at most 100; 1e+05 queries/s"},
		{"min", input(0, steady(0)), func(in *scale.Input, _ *scale.State) { in.Version.Scale.Min = 2 }, 2, "min", "at least 2"},
		{"above a new max", input(9, unknown()), func(in *scale.Input, _ *scale.State) { in.Version.Scale.Max = 5 }, 5, "max", ""},
		{"a step up", input(2, steady(10_000)), func(in *scale.Input, _ *scale.State) { in.Version.Scale.StepUp = 3 }, 6, "capacity", "one step goes to 6"},

		{"a burst of 2 s", input(4, short(1000, 1200, 4000)), nil, 16, "burst", "4000 queries/s over 2 s need 15.04"},
		{"6 s of more", input(4, short(1000, 1700, 1700)), nil, 7, "panic", "1700 queries/s over 6 s"},
		{"what the reserve bears", input(4, short(1000, 1200, 1250)), nil, 4, "capacity", ""},
		{"chance at low rates", input(1, short(1, 1, 4)), func(in *scale.Input, _ *scale.State) {
			in.Version.Scale.Metric, in.Version.Scale.Target = serving.ScaleOnRate, 2
		}, 1, "rate", ""},
		{"panic takes nothing away", input(20, short(1000, 2000, 1000)), func(in *scale.Input, _ *scale.State) {
			in.Ready, in.Demand.Peak.Rate = 3, 2000
		}, 20, "panic", "the demand was 2 times what was ready"},
		{"after panic", input(20, steady(1000)), func(_ *scale.Input, s *scale.State) { s.Keep, s.Kept = now.Add(time.Second), "panic" }, 20, "panic", ""},
		{"a burst within the last minute", input(20, steady(1000)), func(in *scale.Input, _ *scale.State) { in.Demand.Peak.Rate = 4000 }, 16, "capacity", "in the busiest 6 s 15.04"},

		{"cooldown down", input(9, steady(1000)), func(_ *scale.Input, s *scale.State) { s.Changed = ago(29 * time.Second) }, 9, "cooldown", "less than 30s ago"},
		{"after it", input(9, steady(1000)), func(_ *scale.Input, s *scale.State) { s.Changed = ago(30 * time.Second) }, 4, "capacity", ""},
		{"no cooldown up", input(3, steady(1000)), func(_ *scale.Input, s *scale.State) { s.Changed = now }, 4, "capacity", ""},
		{"cooldown up", input(3, steady(1000)), func(in *scale.Input, s *scale.State) {
			s.Changed, in.Version.Scale.CooldownUp = now, serving.Duration(time.Second)
		}, 3, "cooldown", ""},
		{"none for a wake", input(0, steady(0)), func(in *scale.Input, s *scale.State) {
			s.Changed, in.Version.Scale.CooldownUp, in.Woken = now, serving.Duration(time.Hour), now
		}, 1, "wake", "a gateway has queries"},

		{"what was answered before zero wakes nobody", input(0, steady(1)), func(in *scale.Input, s *scale.State) {
			in.Demand.Quiet, s.Changed = 5*time.Second, ago(time.Second)
		}, 0, "capacity", ""},
		{"what came since does", input(0, steady(1)), func(in *scale.Input, s *scale.State) {
			in.Demand.Quiet, s.Changed = time.Second, ago(5*time.Second)
		}, 1, "capacity", ""},

		{"unknown", input(3, unknown()), nil, 3, "unknown", "the demand is unknown: nobody has reported"},
		{"half of it unknown", input(9, steady(1000)), func(in *scale.Input, _ *scale.State) { in.Demand.Stable.Seconds = 29 }, 9, "unknown", "of the last 60 s only 29 are known"},
		{"woken in the dark", input(0, unknown()), func(in *scale.Input, _ *scale.State) { in.Woken = ago(9 * time.Second) }, 1, "wake", ""},
		{"woken long ago", input(0, unknown()), func(in *scale.Input, _ *scale.State) { in.Woken = ago(10 * time.Second) }, 0, "unknown", ""},
		{"woken before it went to zero", input(0, unknown()), func(in *scale.Input, s *scale.State) {
			in.Woken, s.Changed = ago(9*time.Second), ago(time.Second)
		}, 0, "unknown", ""},
		{"woken with replicas", input(3, unknown()), func(in *scale.Input, _ *scale.State) { in.Woken = now }, 3, "unknown", ""},
		{"not measured", input(3, short(100, 100, 100)), func(in *scale.Input, _ *scale.State) { in.Demand.Profile = serving.LatencyLine{} }, 3, "unmeasured", "not measured yet"},
		{"not measured, at zero", input(0, short(100, 100, 100)), func(in *scale.Input, _ *scale.State) { in.Demand.Profile = serving.LatencyLine{} }, 1, "wake", ""},
		{"measured before", input(0, short(1000, 1000, 1000)), func(in *scale.Input, s *scale.State) { in.Demand.Profile, s.Profile = serving.LatencyLine{}, simLine }, 4, "capacity", ""},
		{"no app", input(3, steady(100)), func(in *scale.Input, _ *scale.State) { in.SLO = 0 }, 3, "unmeasured", "no app uses the version"},

		{"idle", input(3, steady(0)), nil, 0, "idle", "no query for 1h0m0s"},
		{"idle for a moment", input(1, steady(0)), func(in *scale.Input, _ *scale.State) { in.Demand.Quiet = 59 * time.Second }, 1, "capacity", ""},
		{"idle since it was changed", input(1, steady(0)), func(_ *scale.Input, s *scale.State) { s.Changed = ago(59 * time.Second) }, 1, "capacity", ""},
		{"idle since it was woken", input(1, steady(0)), func(in *scale.Input, _ *scale.State) { in.Woken = ago(59 * time.Second) }, 1, "capacity", ""},
		{"idle with a min", input(3, steady(0)), func(in *scale.Input, _ *scale.State) { in.Version.Scale.Min = 1 }, 1, "capacity", ""},
		{"idle while it starts", input(1, steady(0)), func(in *scale.Input, s *scale.State) { in.Ready, s.Changed = 0, ago(9*time.Minute) }, 1, "capacity", ""},
		{"starting for too long", input(1, steady(0)), func(in *scale.Input, s *scale.State) { in.Ready, s.Changed = 0, ago(11*time.Minute) }, 0, "idle", ""},
		{"just come to serve", input(8, steady(0)), func(_ *scale.Input, s *scale.State) { s.Role = scale.Rollout }, 8, "rollout", "another version began to serve"},

		{"concurrency", input(1, steady(1000)), func(in *scale.Input, _ *scale.State) {
			in.Version.Scale.Metric, in.Version.Scale.Target = serving.ScaleOnConcurrency, 10
		}, 8, "concurrency", "50 queries in flight over 60 s need 7.14 replicas of 10 at 70 %"},
		{"rate", input(1, steady(1000)), func(in *scale.Input, _ *scale.State) {
			in.Version.Scale.Metric, in.Version.Scale.Target, in.Version.Scale.Utilisation = serving.ScaleOnRate, 100, 1
		}, 10, "rate", "1000 queries/s over 60 s need 10.00 replicas of 100 at 100 %"},

		{"fixed", input(1, unknown()), func(in *scale.Input, _ *scale.State) { in.Version.Scale, in.Version.Replicas = nil, 3 }, 3, "fixed", ""},
		{"fixed at none", input(0, unknown()), func(in *scale.Input, _ *scale.State) { in.Version.Scale, in.Woken = nil, now }, 0, "fixed", ""},
		{"pinned", input(3, steady(1000)), func(in *scale.Input, _ *scale.State) {
			in.Version.Pin = &serving.Pin{Count: 200, Until: now.Add(time.Hour), Reason: "a sale"}
		}, 200, "pin", "an operator set 200 until 2023-11-14T23:13:20Z: a sale"},
		{"pinned at none", input(3, steady(1000)), func(in *scale.Input, _ *scale.State) { in.Version.Pin, in.Woken = &serving.Pin{}, now }, 0, "pin", ""},
		{"paused", input(3, steady(9000)), func(in *scale.Input, _ *scale.State) { in.Version.Pin = &serving.Pin{Count: serving.Paused} }, 3, "pin", "paused"},
		{"no longer pinned", input(4, steady(1000)), func(in *scale.Input, _ *scale.State) { in.Version.Pin = &serving.Pin{Count: 9, Until: now} }, 4, "capacity", ""},

		{"rollout", input(0, unknown()), func(in *scale.Input, _ *scale.State) { in.Role, in.Behind = scale.Rollout, 6 }, 6, "rollout", "as many as the 6 that serve now"},
		{"rollout of a first version", input(0, unknown()), func(in *scale.Input, _ *scale.State) { in.Role = scale.Rollout }, 1, "rollout", ""},
		{"rollout beyond max", input(0, steady(0)), func(in *scale.Input, _ *scale.State) { in.Role, in.Behind = scale.Rollout, 600 }, 100, "rollout", ""},
		{"rollout is not idle", input(2, steady(0)), func(in *scale.Input, _ *scale.State) { in.Role, in.Behind = scale.Rollout, 2 }, 2, "rollout", ""},
		{"rollout of a fixed number", input(0, unknown()), func(in *scale.Input, _ *scale.State) {
			in.Role, in.Behind, in.Version.Scale, in.Version.Replicas = scale.Rollout, 6, nil, 2
		}, 2, "fixed", ""},
		{"serving, meanwhile", input(4, steady(1000)), func(in *scale.Input, _ *scale.State) { in.Role = scale.Serving }, 4, "capacity", ""},

		{"just old", input(6, steady(0)), func(in *scale.Input, _ *scale.State) { in.Role, in.Settled = scale.Old, true }, 6, "old", "kept for a rollback"},
		{"old and quiet", input(6, steady(0)), func(in *scale.Input, s *scale.State) {
			in.Role, in.Settled, s.Role, s.Old = scale.Old, true, scale.Old, ago(5*time.Minute)
		}, 0, "old", "there was no query for 5m0s"},
		{"old, with a longer idle time", input(6, steady(0)), func(in *scale.Input, s *scale.State) {
			in.Role, in.Settled, s.Role, s.Old, in.Version.Scale.Idle = scale.Old, true, scale.Old, ago(5*time.Minute), serving.Duration(time.Hour)
		}, 6, "old", ""},
		{"old, and the new one is not complete", input(6, steady(0)), func(in *scale.Input, s *scale.State) {
			in.Role, s.Role, s.Old = scale.Old, scale.Old, ago(10*time.Minute)
		}, 6, "old", ""},
		{"old, and the new one is never complete", input(6, steady(0)), func(in *scale.Input, s *scale.State) {
			in.Role, s.Role, s.Old = scale.Old, scale.Old, ago(15*time.Minute)
		}, 0, "old", ""},
		{"old, in the dark", input(6, unknown()), func(in *scale.Input, s *scale.State) {
			in.Role, in.Settled, s.Role, s.Old = scale.Old, true, scale.Old, ago(time.Hour)
		}, 6, "unknown", ""},
		{"old, with few queries", input(6, steady(10)), func(in *scale.Input, s *scale.State) {
			in.Role, in.Settled, s.Role, s.Old = scale.Old, true, scale.Old, ago(time.Hour)
		}, 6, "old", ""},
		{"old, with many queries", input(6, steady(2000)), func(in *scale.Input, s *scale.State) {
			in.Role, in.Settled, s.Role, s.Old = scale.Old, true, scale.Old, ago(time.Hour)
		}, 8, "capacity", ""},
		{"old and fixed, with queries", input(1, steady(10)), func(in *scale.Input, _ *scale.State) {
			in.Role, in.Version.Scale, in.Version.Replicas = scale.Old, nil, 3
		}, 3, "fixed", ""},
		{"old and fixed, and quiet", input(3, steady(0)), func(in *scale.Input, s *scale.State) {
			in.Role, in.Settled, in.Version.Scale, in.Version.Replicas, s.Role, s.Old = scale.Old, true, nil, 3, scale.Old, ago(time.Hour)
		}, 0, "old", ""},
		{"old, at zero", input(0, steady(0)), func(in *scale.Input, _ *scale.State) { in.Role, in.Version.Scale.Min = scale.Old, 2 }, 0, "capacity", ""},
	} {
		state := scale.State{}
		if c.change != nil {
			c.change(&c.in, &state)
		}
		d, _ := scale.Decide(state, c.in)
		if d.To != c.to || d.Rule != c.rule || !strings.Contains(d.Reason, c.reason) || d.From != c.in.Job.Count || d.At != now || d.ModelID != id {
			t.Errorf("%s: %s\nwant %d by %s, since %q", c.name, show(d), c.to, c.rule, c.reason)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	in, state := input(4, steady(1000)), scale.State{}
	b.ReportAllocs()
	for b.Loop() {
		_, state = scale.Decide(state, in)
	}
}
