package route

import (
	"testing"
	"time"
)

func TestLatencyIsAMovingAverageOfOutputs(t *testing.T) {
	var l load
	l.output(100)
	if got := l.latency.Load(); got != 100 {
		t.Errorf("after the first: %d", got)
	}
	l.output(200)
	if got := l.latency.Load(); got != 110 {
		t.Errorf("after the second: %d", got)
	}
	for range 200 {
		l.output(1000)
	}
	if got := l.latency.Load(); got < 980 || got > 1000 {
		t.Errorf("in the end: %d", got)
	}
	l.output(0) // a clock that stands still does not make it unknown
	if l.latency.Load() == 0 {
		t.Error("the latency is unknown again")
	}
}

func TestReportsAndFailuresGrowOld(t *testing.T) {
	now := time.Now()
	l, other := load{known: now}, load{known: now}
	now = now.Add(time.Minute)
	l.report(time.Second, now)
	for age, want := range map[time.Duration]bool{0: true, reportFresh - 1: true, reportFresh: false, time.Hour: false} {
		if got := other.cheaper(&l, now.Add(age)); got != want {
			t.Errorf("a report of age %v is believed: %v", age, got)
		}
	}
	l.report(0, now)
	l.failure(now)
	for age, want := range map[time.Duration]bool{0: true, reportFresh - 1: true, reportFresh: false, time.Hour: false} {
		if got := other.cheaper(&l, now.Add(age)); got != want {
			t.Errorf("a failure of age %v is held against the replica: %v", age, got)
		}
	}
	l.failure(now)
	l.output(time.Millisecond)
	other.latency.Store(int64(time.Millisecond))
	if other.cheaper(&l, now) || l.cheaper(&other, now) {
		t.Error("a failure is held against a replica that gave an output since")
	}
}

// A replica that has given no output yet is neither shunned nor overrun: it gets as
// many queries as the other.
func TestAnUnknownLatencyIsThatOfTheOther(t *testing.T) {
	now := time.Now()
	fresh, old := load{known: now}, load{known: now}
	old.latency.Store(int64(10 * time.Millisecond))
	if fresh.cheaper(&old, now) || old.cheaper(&fresh, now) {
		t.Error("one is cheaper")
	}
	fresh.inFlight.Store(1)
	if fresh.cheaper(&old, now) || !old.cheaper(&fresh, now) {
		t.Error("the one with fewer in flight is not the cheaper")
	}
}
