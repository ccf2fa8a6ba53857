package route

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

func TestOutputsCountLessAsTheyAge(t *testing.T) {
	var l load
	now := time.Now()
	expect := func(what string, latency, service int64) {
		t.Helper()
		if l.latency.value.Load() != latency || l.service[0].value.Load() != service {
			t.Errorf("%s: latency %d, service time %d, want %d and %d", what, l.latency.value.Load(), l.service[0].value.Load(), latency, service)
		}
	}
	l.output(100, 0, 0, now)
	expect("after the first", 100, 100)
	l.output(200, 0, 2, now)
	expect("after one that waited for two others", 150, 75)
	now = now.Add(50 * outputDecay)
	l.output(1000, 0, 9, now)
	expect("much later", 1000, 100)
	l.output(0, 0, 0, now.Add(50*outputDecay)) // a clock that stands still does not make it unknown
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
	l.failure(0, now)
	for age, want := range map[time.Duration]bool{0: true, reportFresh - 1: true, reportFresh: false, time.Hour: false} {
		if got := other.cheaper(&l, 0, now.Add(age)); got != want {
			t.Errorf("a failure of age %v is held against the replica: %v", age, got)
		}
	}
	l.failure(0, now)
	l.output(time.Millisecond, 0, 0, now)
	other.service[0].value.Store(int64(time.Millisecond))
	if other.cheaper(&l, 0, now) || l.cheaper(&other, 0, now) {
		t.Error("a failure is held against a replica that gave an output since")
	}
}

// A replica that has given no output yet is neither shunned nor overrun: it gets as
// many queries as the other.
func TestAnUnknownServiceTimeIsThatOfTheOther(t *testing.T) {
	now := time.Now()
	fresh, old := load{known: now}, load{known: now}
	old.service[0].value.Store(int64(10 * time.Millisecond))
	if fresh.cheaper(&old, 0, now) || old.cheaper(&fresh, 0, now) {
		t.Error("one is cheaper")
	}
	fresh.ask(0, 1)
	if fresh.cheaper(&old, 0, now) || !old.cheaper(&fresh, 0, now) {
		t.Error("the one with fewer in flight is not the cheaper")
	}
}

// A replica that refuses low priorities, as one with much to do does, is none that fails: higher ones go to it.
func TestARefusalCountsForItsPriorityAndBelow(t *testing.T) {
	for _, c := range []struct {
		status rpc.Status
		asked  int
		shuns  [serving.Priorities]bool
	}{
		{rpc.StatusLate, 1, [serving.Priorities]bool{false, true, true, true}}, {rpc.StatusFull, 2, [serving.Priorities]bool{false, false, true, true}},
		{rpc.StatusExpired, 0, [serving.Priorities]bool{true, true, true, true}}, {rpc.StatusModelError, 2, [serving.Priorities]bool{true, true, true, true}},
		{rpc.StatusDraining, 3, [serving.Priorities]bool{true, true, true, true}},
	} {
		g, now := standing(2), time.Now().Add(time.Hour)
		bad, good := g.targets[0].replica, g.targets[1].replica
		bad.judge(c.status, 0, c.asked, 0, now)
		for p, shuns := range c.shuns {
			if good.load.cheaper(&bad.load, p, now) != shuns {
				t.Errorf("%v of priority %d, and then one of %d: shunned %v", c.status, c.asked, p, !shuns)
			}
		}
		bad.judge(rpc.StatusOK, time.Millisecond, serving.LowestPriority, 0, now)
		if good.load.cheaper(&bad.load, serving.LowestPriority, now) {
			t.Errorf("%v is held against a replica that gave an output to the lowest priority since", c.status)
		}
	}
}

// What a replica says that a query would wait is counted once: what is this gateway's own, it knows better.
func TestAReportIsOfWhatOthersAsk(t *testing.T) {
	now := time.Now()
	l := load{known: now}
	l.output(10*time.Millisecond, 0, 0, now)
	l.ask(0, 2)
	l.ask(1, 5)
	for _, c := range []struct{ said, wait, others time.Duration }{
		{0, 0, 0}, {25 * time.Millisecond, 25 * time.Millisecond, 0}, {30 * time.Millisecond, 30 * time.Millisecond, 0}, {70 * time.Millisecond, 70 * time.Millisecond, 40 * time.Millisecond},
	} {
		l.report(0, c.said, now)
		if wait, others := l.waiting(0, now); wait != c.wait || others != c.others {
			t.Errorf("it says %v: %v, of that %v for others", c.said, wait, others)
		}
	}
}
