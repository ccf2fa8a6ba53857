package window

import (
	"math"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// TestBacklog is what members of a group say of the same streams.
func TestBacklog(t *testing.T) {
	r := newRig(t)
	records := map[string]map[string]uint64{} // by gateway and stream
	pass := func(seconds int) Backlog {
		for range seconds {
			for _, name := range []string{"a", "b"} {
				one := report(name, r.now, 0)
				for stream, n := range records[name] {
					one.Backlogs = append(one.Backlogs, serving.Backlog{ModelID: m1, Stream: stream, Records: n, Answered: 10, CatchUp: time.Minute})
				}
				r.pending = append(r.pending, one)
			}
			r.pass()
			r.take()
		}
		return r.demand(m1).Backlog
	}
	want := func(when string, got, want Backlog) {
		t.Helper()
		for _, x := range []*float64{&got.Answered, &want.Answered, &got.Wanted, &want.Wanted} {
			*x = math.Round(*x*1e6) / 1e6
		}
		if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", when, got, want)
		}
	}
	want("before anything", pass(10), Backlog{})
	records["a"] = map[string]uint64{"wine": 600}
	records["b"] = map[string]uint64{"wine": 540, "beer": 60}
	want("when it came", pass(4), Backlog{Stream: "wine", Records: 660, CatchUp: time.Minute, Wanted: 11, Answered: 30. * 4 / 14})
	if q := r.demand(m1).Quiet; q < 10*time.Second {
		t.Errorf("what waits counts as a query: quiet for %v", q)
	}
	want("unchanged", pass(60), Backlog{Stream: "wine", Records: 660, CatchUp: time.Minute, Wanted: 11, Answered: 30})
	for range 25 {
		records["a"]["wine"] += 6
		pass(1)
	}
	want("growing", pass(0), Backlog{Stream: "wine", Records: 810, CatchUp: time.Minute, Wanted: 13.5, Growth: 6, Answered: 30})
	for range 25 {
		records["a"]["wine"] -= 8
		records["b"]["wine"] = 0
		pass(1)
	}
	want("shrinking", pass(0), Backlog{Stream: "wine", Records: 610, CatchUp: time.Minute, Wanted: 61. / 6, Growth: -8, Answered: 30})
	records["a"], records["b"] = nil, nil
	if got := pass(4); got.Records != 610 {
		t.Errorf("for a moment: %+v", got)
	}
	if got := pass(1); got.Records != 0 || got.Stream != "" || got.Wanted != 0 || got.Growth != 0 {
		t.Errorf("when nothing is said of it: %+v", got)
	}
	pass(2 * span)
	if r.w.Has(m1) {
		t.Error("a stream that is gone is remembered")
	}
	if d := r.demand(m2); d.Backlog != (Backlog{}) {
		t.Errorf("another version has %+v", d.Backlog)
	}
}
