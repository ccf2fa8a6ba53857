package route

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestHealth(t *testing.T) {
	const (
		fail    = "fail"    // wants: did it eject the replica
		succeed = "succeed" // wants nothing
		use     = "use"     // wants: may it be asked
		probe   = "probe"   // wants: may it be asked, as a probe
	)
	type step struct {
		at   time.Duration
		do   string
		want bool
	}
	tests := map[string][]step{
		"a new replica is usable": {
			{0, use, true}, {0, use, true},
		},
		"two failures are borne, three in a row eject": {
			{0, fail, false}, {0, fail, false}, {0, use, true}, {0, succeed, false},
			{0, fail, false}, {0, fail, false}, {0, use, true}, {0, fail, true}, {0, use, false},
		},
		"ejected for a second, then probed once": {
			{0, fail, false}, {0, fail, false}, {0, fail, true},
			{time.Second - 1, use, false}, {time.Second, probe, true}, {time.Second, use, false}, {2*time.Second - 1, use, false},
		},
		"a good probe takes it back and forgets": {
			{0, fail, false}, {0, fail, false}, {0, fail, true}, {time.Second, probe, true},
			{time.Second, succeed, false}, {time.Second, use, true}, {time.Second, use, true},
			{time.Second, fail, false}, {time.Second, fail, false}, {time.Second, fail, true},
			{2*time.Second - 1, use, false}, {2 * time.Second, probe, true},
		},
		"a bad probe doubles the time": {
			{0, fail, false}, {0, fail, false}, {0, fail, true},
			{1 * time.Second, probe, true}, {1 * time.Second, fail, false}, {3*time.Second - 1, use, false},
			{3 * time.Second, probe, true}, {4 * time.Second, fail, false}, {8*time.Second - 1, use, false},
			{8 * time.Second, probe, true}, {8 * time.Second, fail, false}, {16*time.Second - 1, use, false},
			{16 * time.Second, probe, true}, {16 * time.Second, fail, false}, {32*time.Second - 1, use, false},
			{32 * time.Second, probe, true}, {32 * time.Second, fail, false}, {62*time.Second - 1, use, false}, // not 64
			{62 * time.Second, probe, true}, {62 * time.Second, fail, false}, {92*time.Second - 1, use, false},
			{92 * time.Second, probe, true}, {92 * time.Second, succeed, false}, {92 * time.Second, use, true},
		},
		"failures that were in flight do not prolong an ejection": {
			{0, fail, false}, {0, fail, false}, {0, fail, true},
			{100 * time.Millisecond, fail, false}, {900 * time.Millisecond, fail, false},
			{time.Second - 1, use, false}, {time.Second, probe, true},
			{time.Second, fail, false}, {time.Second, fail, false}, {time.Second, fail, false}, // the probe, and two late ones
			{3 * time.Second, probe, true},
		},
		"a probe that is never heard of is repeated": { // a refusal is no verdict either
			{0, fail, false}, {0, fail, false}, {0, fail, true},
			{1 * time.Second, probe, true}, {2*time.Second - 1, use, false},
			{2 * time.Second, probe, true}, {3*time.Second - 1, use, false}, {3 * time.Second, probe, true},
			{3 * time.Second, succeed, false}, {3 * time.Second, use, true},
		},
		"a late success takes it back": {
			{0, fail, false}, {0, fail, false}, {0, fail, true}, {10 * time.Millisecond, succeed, false}, {10 * time.Millisecond, use, true},
		},
	}
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var h health
			for i, s := range steps {
				now := epoch.Add(s.at)
				var got bool
				switch s.do {
				case fail:
					got = h.fail(now)
				case succeed:
					h.succeed()
				case use, probe:
					ok, isProbe := h.usable(now)
					if got = ok; isProbe != (s.do == probe) {
						t.Errorf("step %d, %v: it is a probe: %v", i, s, isProbe)
					}
				}
				if got != s.want {
					t.Fatalf("step %d, %v: got %v", i, s, got)
				}
			}
		})
	}
}

// Whatever happens, an ejection ends: after ejectMax without a failure the replica
// is let through, and one success takes it back.
func TestNoReplicaStaysEjected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h health
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		t.Repeat(map[string]func(*rapid.T){
			"fail":    func(t *rapid.T) { h.fail(now) },
			"succeed": func(t *rapid.T) { h.succeed() },
			"use":     func(t *rapid.T) { h.usable(now) },
			"pass": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(ejectMax)).Draw(t, "time")))
			},
			"": func(t *rapid.T) {
				if h.ejected() && (h.eject < ejectMin || h.eject > ejectMax || h.until.Sub(now) > ejectMax) {
					t.Fatalf("ejected for %v, still for %v", h.eject, h.until.Sub(now))
				}
				if h.ejected() && h.failures < ejectAfter {
					t.Fatalf("ejected after %d failures", h.failures)
				}
			},
		})
		if ok, _ := h.usable(now.Add(ejectMax)); !ok {
			t.Fatal("it is not let through")
		}
		h.succeed()
		if ok, probe := h.usable(now); !ok || probe {
			t.Fatal("a success does not take it back")
		}
	})
}
