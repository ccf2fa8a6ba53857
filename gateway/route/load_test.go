package route

import (
	"testing"
	"time"
)

func TestOutputsCountLessAsTheyAge(t *testing.T) {
	var l load
	now := time.Now()
	expect := func(what string, latency, service int64) {
		t.Helper()
		if l.latency.Load() != latency || l.service.Load() != service {
			t.Errorf("%s: latency %d, service time %d, want %d and %d", what, l.latency.Load(), l.service.Load(), latency, service)
		}
	}
	l.output(100, 0, now)
	expect("after the first", 100, 100)
	l.output(200, 2, now)
	expect("after one that waited for two others", 150, 75)
	now = now.Add(50 * outputDecay)
	l.output(1000, 9, now)
	expect("much later", 1000, 100)
	l.output(0, 0, now.Add(50*outputDecay)) // a clock that stands still does not make it unknown
	expect("without time", 1, 1)
}

func TestReportsAndFailuresGrowOld(t *testing.T) {
	now := time.Now()
	l, other := load{known: now}, load{known: now}
	now = now.Add(time.Minute)
	l.report(0, time.Second, now)
	for age, want := range map[time.Duration]bool{0: true, reportFresh - 1: true, reportFresh: false, time.Hour: false} {
		if got := other.cheaper(&l, 0, now.Add(age)); got != want {
			t.Errorf("a report of age %v is believed: %v", age, got)
		}
	}
	l.report(0, 0, now)
	l.failure(now)
	for age, want := range map[time.Duration]bool{0: true, reportFresh - 1: true, reportFresh: false, time.Hour: false} {
		if got := other.cheaper(&l, 0, now.Add(age)); got != want {
			t.Errorf("a failure of age %v is held against the replica: %v", age, got)
		}
	}
	l.failure(now)
	l.output(time.Millisecond, 0, now)
	other.service.Store(int64(time.Millisecond))
	if other.cheaper(&l, 0, now) || l.cheaper(&other, 0, now) {
		t.Error("a failure is held against a replica that gave an output since")
	}
}

// A replica that has given no output yet is neither shunned nor overrun: it gets as
// many queries as the other.
func TestAnUnknownServiceTimeIsThatOfTheOther(t *testing.T) {
	now := time.Now()
	fresh, old := load{known: now}, load{known: now}
	old.service.Store(int64(10 * time.Millisecond))
	if fresh.cheaper(&old, 0, now) || old.cheaper(&fresh, 0, now) {
		t.Error("one is cheaper")
	}
	fresh.inFlight.Store(1)
	if fresh.cheaper(&old, 0, now) || !old.cheaper(&fresh, 0, now) {
		t.Error("the one with fewer in flight is not the cheaper")
	}
}
