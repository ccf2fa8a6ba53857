package sidecar

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// An app of the highest priority that asks for most of what the model can do loses nothing to one of a lower priority
// that asks for everything, and the lower one gets what is left.
func TestALowerPriorityGetsWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		name   string
		models []timed
		spec   serving.BatchSpec
		rate   float64 // what the models can do
		slo    time.Duration
		most   float64 // how much longer answers of the highest priority may take
		least  float64 // of what it leaves, the other must get
	}{
		{"10 ms an input", []timed{linear(0, 10*ms)}, serving.BatchSpec{}, 100, 100 * ms, 1.2, 0.85},
		{"a long objective", []timed{linear(0, 10*ms)}, serving.BatchSpec{}, 100, 500 * ms, 1.2, 0.85},
		{"in batches of 1", []timed{flat(10*ms, 0.1)}, serving.BatchSpec{MaxSize: 1}, 100, 100 * ms, 1.2, 0.85},
		{"four replicas", []timed{linear(0, 10*ms), linear(0, 10*ms), linear(0, 10*ms), linear(0, 10*ms)}, serving.BatchSpec{}, 400, 100 * ms, 1.2, 0.85},
		{"1 ms an input", []timed{linear(0, ms)}, serving.BatchSpec{}, 1000, 50 * ms, 1.2, 0.85},
		{"100 ms an input", []timed{linear(0, 100*ms)}, serving.BatchSpec{}, 10, time.Second, 1.2, 0.85},
		// Here batches would have to be longer for both to get all.
		{"2 ms and 0.1 ms an input", []timed{linear(2*ms, ms/10)}, serving.BatchSpec{}, 9111, 50 * ms, 2, 0.55},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				online := &asking{Class: serving.Class{App: "online"}, rate: c.rate * 0.7, slo: c.slo}
				other := &asking{Class: serving.Class{App: "other", Priority: 1}, rate: c.rate, slo: 4 * c.slo}
				lasts := time.Duration(max(2000/c.rate, 5) * float64(time.Second))
				l := newLoad(t, c.spec, c.models...)
				l.run(lasts, online)
				alone, lost := online.p99(), online.sent-len(online.took)
				online.sent, online.took = 0, nil
				end := time.Now().Add(lasts)
				l.run(lasts, online, other)
				l.stop()
				settled := lasts - 2*time.Second // sizes are found by then
				rest := float64(other.between(end.Add(-settled), end)) / settled.Seconds()
				t.Logf("99 %% of its answers take up to %v, alone %v; %d of %d are lost, alone %d; the other has %.1f a second of %.1f", online.p99(), alone, online.sent-len(online.took), online.sent, lost, rest, c.rate*0.3)
				if online.sent != len(online.took) || float64(online.p99()) > c.most*float64(alone) {
					t.Errorf("%d of %d had no answer, and 99 %% took up to %v; alone up to %v", online.sent-len(online.took), online.sent, online.p99(), alone)
				}
				if rest < c.least*0.3*c.rate {
					t.Errorf("the other had %.1f a second of %.1f that are left", rest, 0.3*c.rate)
				}
			})
		})
	}
}

// An app with a minimum share has it though a higher priority asks for more than there is.
func TestAMinimumShareOfAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoad(t, serving.BatchSpec{}, linear(0, 10*ms))
		above := &asking{Class: serving.Class{App: "above"}, rate: 150, slo: 100 * ms}
		below := &asking{Class: serving.Class{App: "below", Priority: 2, MinShare: 0.2}, rate: 50, slo: 200 * ms}
		none := &asking{Class: serving.Class{App: "none", Priority: 1}, rate: 50, slo: 200 * ms}
		start := time.Now().Add(time.Second)
		l.run(11*time.Second, above, below, none)
		l.stop()
		end := start.Add(10 * time.Second)
		if n := below.between(start, end); n < 190 || n > 210 {
			t.Errorf("an app with a minimum share of 0.2 had %d of 1000", n)
		}
		if n, m := above.between(start, end), none.between(start, end); n < 780 || m > 10 {
			t.Errorf("the highest priority had %d of the 800 that are left, and one without a minimum share %d", n, m)
		}
	})
}
