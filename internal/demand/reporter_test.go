package demand

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

var source = serving.DemandSource{Role: "gateway", Name: "g"}

// sink keeps what it is given.
type sink struct{ reports []serving.DemandReport }

func (s *sink) WriteDemand(r serving.DemandReport) { s.reports = append(s.reports, r) }

// seconds is each report as its second, counted from base, and the arrivals in it.
func (s *sink) seconds(base time.Time) []string {
	var list []string
	for _, r := range s.reports {
		var n uint64
		for _, d := range r.Demands {
			n += d.Arrivals
		}
		text := fmt.Sprintf("%d:%d", int(r.Second.Sub(base)/time.Second), n)
		if r.Last {
			text += " last"
		}
		list = append(list, text)
	}
	return list
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("reports %q, want %q", got, want)
	}
}

// TestReporterRuns begins at 0.3 s, counts, and ends at 4.5 s.
func TestReporterRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := time.Now() // a whole second in a bubble
		time.Sleep(300 * time.Millisecond)
		m, s := NewMeter(), &sink{}
		tally := m.Open(a1, nil)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); (&Reporter{Source: source, Meter: m, Sink: s}).Run(ctx) }()
		ask := func(n int) {
			for range n {
				tally.Began(time.Now(), time.Now()).Ended(time.Now(), true)
			}
		}
		ask(1)
		time.Sleep(600 * time.Millisecond) // 0.9 s
		ask(1)
		time.Sleep(200 * time.Millisecond) // 1.1 s
		ask(3)
		time.Sleep(2 * time.Second) // 3.1 s
		ask(4)
		time.Sleep(1400 * time.Millisecond) // 4.5 s
		ask(5)
		stop()
		<-done
		want(t, s.seconds(base), "0:2", "1:3", "2:0", "3:4", "4:5 last")
		for _, r := range s.reports {
			if r.Source != source || r.Second.Location() != time.UTC || r.Second.Nanosecond() != 0 {
				t.Errorf("report %+v", r)
			}
		}
	})
}

// TestReporterEndsOnTheSecond reports the second that ended, and then the last one.
func TestReporterEndsOnTheSecond(t *testing.T) {
	for range 20 { // both are ready at the same moment, and either may be seen first
		synctest.Test(t, func(t *testing.T) {
			base := time.Now()
			m, s := NewMeter(), &sink{}
			m.Open(a1, nil).Began(time.Now(), time.Now()).Ended(time.Now(), true)
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
			defer stop()
			(&Reporter{Source: source, Meter: m, Sink: s}).Run(ctx)
			want(t, s.seconds(base), "0:1", "1:0", "2:0 last")
		})
	}
}

// ticks are times of ticks, in seconds after base, by the wall's clock and by the
// monotonic one, with the arrivals before each.
func ticks(t *testing.T, list ...tick) []string {
	t.Helper()
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m, s := NewMeter(), &sink{}
	tally, r := m.Open(a1, nil), &Reporter{Source: source, Meter: m, Sink: s}
	state := span{since: base, second: base.Add(-time.Second)}
	for _, k := range list {
		for range k.arrivals {
			tally.Began(base, base).Ended(time.Now(), true)
		}
		now := base.Add(time.Duration(k.at * float64(time.Second)))
		if k.passed != 0 { // the clock was set since the last tick
			state.since = now.Add(-time.Duration(k.passed * float64(time.Second)))
		}
		r.tick(&state, now)
	}
	return s.seconds(base)
}

type tick struct {
	at       float64
	arrivals int
	passed   float64 // since the last tick, when the clocks disagree
}

func TestReporterTicksLate(t *testing.T) {
	for name, test := range map[string]struct {
		ticks []tick
		want  []string
	}{
		"in time":              {[]tick{{at: 1, arrivals: 3}, {at: 2.001, arrivals: 4}}, []string{"0:3", "1:4"}},
		"late within a second": {[]tick{{at: 1, arrivals: 3}, {at: 2.9, arrivals: 4}, {at: 3.01, arrivals: 1}}, []string{"0:3", "1:4", "2:1"}},
		"stopped for seconds": {
			[]tick{{at: 1, arrivals: 3}, {at: 7.4, arrivals: 50}, {at: 8, arrivals: 20}, {at: 9, arrivals: 5}},
			[]string{"0:3", "8:5"}, // seconds 1 to 7 are missing, not zero
		},
		"stopped twice": {
			[]tick{{at: 1, arrivals: 3}, {at: 7.4, arrivals: 50}, {at: 11, arrivals: 20}, {at: 12, arrivals: 5}, {at: 13, arrivals: 6}},
			[]string{"0:3", "12:6"},
		},
		"clock forward":         {[]tick{{at: 1, arrivals: 3}, {at: 3601, arrivals: 4, passed: 0.8}, {at: 3602, arrivals: 5}}, []string{"0:3", "3600:4", "3601:5"}},
		"clock back a little":   {[]tick{{at: 1, arrivals: 3}, {at: 1.0, arrivals: 2, passed: 0.3}, {at: 2, arrivals: 4, passed: 1.3}}, []string{"0:3", "1:6"}},
		"clock back far":        {[]tick{{at: 3601, arrivals: 3, passed: 1}, {at: 1, arrivals: 2, passed: 1}, {at: 2, arrivals: 4}}, []string{"3600:3", "0:2", "1:4"}},
		"a timer that is early": {[]tick{{at: 1, arrivals: 3}, {at: 1.9999, arrivals: 2}, {at: 2, arrivals: 1}}, []string{"0:3", "1:3"}},
	} {
		t.Run(name, func(t *testing.T) { want(t, ticks(t, test.ticks...), test.want...) })
	}
}
