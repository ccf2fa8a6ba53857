package predict

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// sums adds up reports.
type sums map[serving.ModelID]serving.Demand

func (s sums) WriteDemand(r serving.DemandReport) {
	for _, d := range r.Demands {
		sum := s[d.ModelID]
		sum.ModelID = d.ModelID
		sum.Arrivals += d.Arrivals
		sum.Unserved += d.Unserved
		sum.Defaults += d.Defaults
		sum.Diverted += d.Diverted
		sum.Concurrency += d.Concurrency
		s[d.ModelID] = sum
	}
}

// wantDemand runs something in a bubble, and compares what was counted until a second
// later with what should be.
func wantDemand(t *testing.T, run func(t *rig), want ...serving.Demand) {
	t.Helper()
	bubble(t, func(t *rig) {
		t.p.Demand = demand.NewMeter()
		got := sums{}
		ctx, stop := context.WithCancel(t.ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			(&demand.Reporter{Source: serving.DemandSource{Role: "gateway", Name: "g"}, Meter: t.p.Demand, Sink: got}).Run(ctx)
		}()
		run(t)
		time.Sleep(time.Second)
		stop()
		<-ended
		all := sums{}
		for _, d := range want {
			all[d.ModelID] = d
		}
		if !maps.Equal(got, all) {
			t.Errorf("counted %#v, want %#v", got, all)
		}
	})
}

const took = 40 * time.Millisecond // by a replica

func TestDemandIsWhatNoCacheAnswers(t *testing.T) {
	wantDemand(t, func(t *rig) {
		t.replica("a", echoes(took), m1)
		t.serves(nil, m1)
		done := make(chan struct{})
		go func() { defer close(done); t.predict(newQuery(1)) }()
		synctest.Wait()
		t.predict(newQuery(1)) // joins it
		<-done
		t.predict(newQuery(1)) // is in the cache
		t.predict(newQuery(2))
	}, serving.Demand{ModelID: m1, Arrivals: 2, Concurrency: 2 * took})
}

func TestDemandOfAnAppWithoutACache(t *testing.T) {
	wantDemand(t, func(t *rig) {
		t.replica("a", echoes(took), m1)
		t.serves(func(a *serving.App) { a.Cache.Off = true }, m1)
		for range 3 {
			t.predict(newQuery(1))
		}
	}, serving.Demand{ModelID: m1, Arrivals: 3, Concurrency: 3 * took})
}

// A question is in flight until its answer, also when that comes too late.
func TestDemandThatIsAnsweredLate(t *testing.T) {
	wantDemand(t, func(t *rig) {
		t.replica("a", echoes(slo+took), m1)
		t.serves(nil, m1)
		a, _ := t.predict(newQuery(1))
		t.wantDefault(a, serving.MissedSLO)
	}, serving.Demand{ModelID: m1, Arrivals: 1, Defaults: 1, Concurrency: slo + took})
}

func TestDemandThatFails(t *testing.T) {
	wantDemand(t, func(t *rig) {
		t.replica("a", fails(rpc.StatusModelError, "no"), m1)
		t.serves(nil, m1)
		t.predict(newQuery(1))
		t.predict(newQuery(2))
	}, serving.Demand{ModelID: m1, Arrivals: 2, Defaults: 2})
}

// Without a replica a question is held, in flight, until its time is up.
func TestDemandWithoutAReplica(t *testing.T) {
	wantDemand(t, func(t *rig) {
		t.serves(nil, m1)
		a, _ := t.predict(newQuery(1))
		t.wantDefault(a, serving.NoReplica)
	}, serving.Demand{ModelID: m1, Arrivals: 1, Unserved: 1, Defaults: 1, Concurrency: slo - margin})
}

// A question that was held and then answered found no replica at first.
func TestDemandThatWaitsForAReplica(t *testing.T) {
	wantDemand(t, func(t *rig) {
		t.serves(nil, m1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			a, _ := t.predict(newQuery(1))
			t.wantOutput(a, 1)
		}()
		time.Sleep(10 * time.Millisecond)
		t.replica("a", echoes(took), m1)
		<-done
	}, serving.Demand{ModelID: m1, Arrivals: 1, Unserved: 1, Concurrency: 10*time.Millisecond + took})
}

// A question that went to a second replica is one question.
func TestDemandThatIsRetried(t *testing.T) {
	wantDemand(t, func(t *rig) {
		t.replica("a", fails(rpc.StatusFull, "full"), m1)
		t.replica("b", fails(rpc.StatusFull, "full"), m1)
		t.serves(nil, m1)
		t.predict(newQuery(1))
	}, serving.Demand{ModelID: m1, Arrivals: 1, Defaults: 1})
}

// Apps share the count of a version, and each version has its own. A version that is
// registered anew is counted anew.
func TestDemandOfSeveralApps(t *testing.T) {
	n1 := id("n", "1")
	wantDemand(t, func(t *rig) {
		t.replica("a", echoes(took), m1, n1)
		other := newApp("other", "m")
		apps := []*serving.App{newApp("app", "m"), other, newApp("third", "n")}
		ask := func(app string, x float64) {
			q := newQuery(x)
			q.App = app
			t.predict(q)
		}
		t.set(newCatalog(apps, newModel(m1), newModel(n1)))
		ask("app", 1)
		ask("other", 2)
		ask("third", 3)
		t.set(newCatalog(apps[2:], newModel(n1)))
		if n := len(t.p.tallies); n != 1 {
			t.Errorf("%d versions are counted", n)
		}
		t.set(newCatalog(apps, newModel(m1), newModel(n1)))
		ask("app", 4)
	}, serving.Demand{ModelID: m1, Arrivals: 3, Concurrency: 3 * took}, serving.Demand{ModelID: n1, Arrivals: 1, Concurrency: took})
}
