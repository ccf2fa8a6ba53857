package serving

import (
	"slices"
	"testing"
	"time"
)

func TestStages(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	asked := Timing{
		Received: start, Decoded: at(1), Selected: at(3), Looked: at(6), Sent: at(10), Heard: at(30), Combined: at(36), Encoded: at(43),
		Cache: "missed", Model: ModelID{Model: "m", Version: "2"}, Replica: "r1",
	}
	const ms = time.Millisecond
	before := []TimedStage{{"decode", 1 * ms, ""}, {"select", 2 * ms, ""}, {"cache", 3 * ms, "missed"}}
	after := []TimedStage{{"combine", 6 * ms, ""}, {"encode", 7 * ms, ""}}
	for name, tt := range map[string]struct {
		change func(t *Timing)
		want   []TimedStage
	}{
		"the replica does not say what the model took": {func(*Timing) {},
			slices.Concat(before, []TimedStage{{"wait", 4 * ms, ""}, {"model", 20 * ms, "m:2 r1"}}, after)},
		"it does": {func(t *Timing) { t.Service = 15 * ms },
			slices.Concat(before, []TimedStage{{"wait", 9 * ms, ""}, {"model", 15 * ms, "m:2 r1"}}, after)},
		"it lies": {func(t *Timing) { t.Service = time.Hour },
			slices.Concat(before, []TimedStage{{"wait", 4 * ms, ""}, {"model", 20 * ms, "m:2 r1"}}, after)},
		"no replica came": {func(t *Timing) { t.Sent = time.Time{} },
			slices.Concat(before, []TimedStage{{"wait", 24 * ms, ""}}, after)},
		"a hit": {func(t *Timing) { t.Cache, t.Sent, t.Heard = "hit", time.Time{}, time.Time{} },
			[]TimedStage{{"decode", 1 * ms, ""}, {"select", 2 * ms, ""}, {"cache", 3 * ms, "hit"}, {"combine", 30 * ms, ""}, {"encode", 7 * ms, ""}}},
		"an empty batch": {func(t *Timing) { *t = Timing{Received: start, Decoded: at(1), Encoded: at(3)} },
			[]TimedStage{{"decode", 1 * ms, ""}, {"encode", 2 * ms, ""}}},
	} {
		one := asked
		tt.change(&one)
		got := one.Stages()
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%v, want\n%v", name, got, tt.want)
		}
		var sum time.Duration
		for _, s := range got {
			sum += s.Took
		}
		if sum != one.Encoded.Sub(one.Received) {
			t.Errorf("%s: the stages took %v in all, and the query %v", name, sum, one.Encoded.Sub(one.Received))
		}
	}
}
