package scale_test

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/serving"
)

// TestLoad compares the load with the decision that goes by it.
func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     scale.Input
		change func(*scale.Input, *scale.State)
		rule   string
		want   scale.Load
	}{
		{"enough", input(4, steady(1000)), nil, "capacity", scale.Load{1000, 4 * each, true, true}},
		{"a burst", input(4, short(1000, 1200, 4000)), nil, "burst", scale.Load{4000, 4 * each, true, true}},
		{"panic", input(4, short(1000, 1700, 1700)), nil, "panic", scale.Load{1700, 4 * each, true, true}},
		{"some start", input(8, steady(2000)), func(in *scale.Input, _ *scale.State) { in.Ready = 1 }, "capacity", scale.Load{2000, each, true, true}},
		{"none is ready", input(1, steady(0)), func(in *scale.Input, _ *scale.State) { in.Ready = 0 }, "idle", scale.Load{0, 0, true, true}},
		{"unknown", input(3, unknown()), nil, "unknown", scale.Load{}},
		{"unknown, and measured before", input(3, unknown()), func(_ *scale.Input, s *scale.State) { s.Profile = simLine }, "unknown", scale.Load{0, 3 * each, false, true}},
		{"not measured", input(3, short(100, 100, 100)), func(in *scale.Input, _ *scale.State) { in.Demand.Profile = serving.LatencyLine{} }, "unmeasured", scale.Load{100, 0, true, false}},
		{"no app", input(3, steady(100)), func(in *scale.Input, _ *scale.State) { in.SLO = 0 }, "unmeasured", scale.Load{100, 0, true, false}},
	} {
		state := scale.State{Changed: now.Add(-time.Hour)}
		if c.change != nil {
			c.change(&c.in, &state)
		}
		d, state := scale.Decide(state, c.in)
		if got := scale.LoadOf(state, c.in, d); got != c.want || d.Rule != c.rule {
			t.Errorf("%s: %+v by %s, want %+v by %s", c.name, got, d.Rule, c.want, c.rule)
		}
	}
}
