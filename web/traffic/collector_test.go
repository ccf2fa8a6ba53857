package traffic_test

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/traffic"
)

// What policies choose is known for a minute, at all gateways together, and over the restart of one.
func TestWhatIsChosen(t *testing.T) {
	g := map[string]*process{"a": newProcess(), "b": newProcess()}
	g["a"].choose("sum", 1000, "m", 1000, 1000, 1000) // before the first look
	run(t, gateways(g), func(c *traffic.Collector) {
		wants := func(want ...api.ModelTraffic) {
			t.Helper()
			got := c.Chosen("sum")
			slices.SortFunc(got, func(a, b api.ModelTraffic) int { return a.Compare(b.ModelID) })
			for i := range got {
				for _, x := range []*float64{&got[i].Chosen, &got[i].Answered, &got[i].Agreed} {
					*x = math.Round(*x*1e4) / 1e4
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("chosen %#v, want %#v", got, want)
			}
		}
		of := func(model string, chosen, answered, agreed float64) api.ModelTraffic {
			return api.ModelTraffic{ModelID: serving.ModelID{Model: model, Version: "1"}, Chosen: chosen, Answered: answered, Agreed: agreed}
		}
		ask := func(int) {
			g["a"].choose("sum", 10, "m", 10, 8, 4)
			g["b"].choose("sum", 30, "n", 10, 10, 10)
		}
		every(20, ask)
		wants(of("m", 0.25, 0.8, 0.4), of("n", 0.25, 1, 1))
		if got := c.Chosen("other"); got != nil {
			t.Errorf("of an app that is not there: %+v", got)
		}
		g["a"].restart()
		every(20, ask)
		wants(of("m", 0.25, 0.8, 0.4), of("n", 0.25, 1, 1))
		every(61, func(int) { g["b"].choose("sum", 1, "n", 1, 1, 0) })
		wants(of("n", 1, 1, 0))
	})
}

func TestTrafficOfTwoGateways(t *testing.T) {
	g := map[string]*process{"a": newProcess(), "b": newProcess()}
	g["a"].answer("sum", serving.OK, 5000, time.Second) // before anybody looked
	run(t, gateways(g), func(c *traffic.Collector) {
		every(30, func(int) {
			g["a"].answer("sum", serving.OK, 90, 20*time.Millisecond)
			g["a"].answer("sum", serving.MissedSLO, 10, 100*time.Millisecond)
			g["b"].answer("sum", serving.OK, 100, 20*time.Millisecond)
			g["b"].answer("other", serving.OK, 1, 2*time.Millisecond)
			g["b"].cache.WithLabelValues("sum", "hit").Add(3)
			g["b"].cache.WithLabelValues("sum", "joined").Add(1)
			g["b"].cache.WithLabelValues("sum", "missed").Add(4)
		})
		now := c.Now()
		if len(now.Apps) != 2 || now.Window != 60 || !now.At.Equal(time.Now()) {
			t.Fatalf("%+v", now)
		}
		sum := now.Apps[0] // the worst first
		want := api.AppTraffic{App: "sum", SLO: 100_000, Rate: 200, CacheHits: 0.5}
		// Times are told to the bucket: 10 to 25 ms, and 50 to 100 ms.
		if sum.P50 < 10_000 || sum.P50 > 25_000 || sum.P99 < 50_000 || sum.P99 > 100_000 {
			t.Errorf("p50 %d, p99 %d", sum.P50, sum.P99)
		}
		if math.Abs(sum.Causes["missed_slo"]-10) > 1e-3 || len(sum.Causes) != 1 {
			t.Errorf("causes %v", sum.Causes)
		}
		round := func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
		got := api.AppTraffic{
			App: sum.App, SLO: sum.SLO, Rate: round(sum.Rate), CacheHits: round(sum.CacheHits),
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if round(*sum.Attainment) != 0.95 || round(*sum.Defaults) != 0.05 {
			t.Errorf("attainment %v, defaults %v", *sum.Attainment, *sum.Defaults)
		}
		if other := now.Apps[1]; other.App != "other" || *other.Attainment != 1 || round(other.Rate) != 1 {
			t.Errorf("%+v", other)
		}

		s := c.App("sum", 15*time.Minute)
		if s.Step != 1 || len(s.Times) != 900 || s.Times[899] != time.Now().Unix()-1 {
			t.Fatalf("step %d, %d times up to %d", s.Step, len(s.Times), s.Times[len(s.Times)-1])
		}
		if got := lastOf(3, s.Rate); !slices.Equal(got, []float64{200, 200, 200}) {
			t.Errorf("rates %v", got)
		}
		if s.Rate[0] != nil || s.Attainment[0] != nil || s.P99[0] != nil {
			t.Errorf("what was not seen is known: %v", *s.Rate[0])
		}
		if got := lastOf(1, s.Causes["missed_slo"]); got[0] != 10 {
			t.Errorf("causes %v", s.Causes)
		}
		if p := lastOf(1, s.P99)[0]; p < 50_000 || p > 100_000 {
			t.Errorf("p99 %v", p)
		}
		if day := c.App("sum", 24*time.Hour); day.Step != 120 || math.Abs(lastOf(1, day.Rate)[0]-200) > 0.1 {
			t.Errorf("over a day: step %d, rate %v", day.Step, lastOf(1, day.Rate))
		}
	})
}

// TestWhatFailsIsUnknown has one gateway away for a while, then both.
func TestWhatFailsIsUnknown(t *testing.T) {
	g := map[string]*process{"a": newProcess(), "b": newProcess()}
	both := func(int) {
		g["a"].answer("sum", serving.OK, 100, time.Millisecond)
		g["b"].answer("sum", serving.OK, 50, time.Millisecond)
	}
	run(t, gateways(g), func(c *traffic.Collector) {
		every(10, both)
		g["b"].set(func(p *process) { p.fails = errAway })
		every(5, both)
		// The second that goes on is not shown yet, so that these are the four before.
		if got := lastOf(4, c.App("sum", time.Minute).Rate); !slices.Equal(got, []float64{100, 100, 100, 100}) {
			t.Errorf("one away: %v", got)
		}
		g["b"].set(func(p *process) { p.fails = nil })
		every(2, both)
		if got := lastOf(6, c.App("sum", time.Minute).Rate); !slices.Equal(got, []float64{150, 150, 150, 150, 150, 150}) {
			t.Errorf("back, with what it counted meanwhile: %v", got)
		}
		for _, p := range g {
			p.set(func(p *process) { p.takes = time.Hour })
		}
		every(70, both)
		if got := lastOf(3, c.App("sum", time.Minute).Rate); !slices.Equal(got, []float64{-1, -1, -1}) {
			t.Errorf("all away: %v", got)
		}
		if now := c.Now(); len(now.Apps) != 0 {
			t.Errorf("of an unknown minute it says %+v", now.Apps)
		}
	})
}

// TestRestart has a gateway start anew, which makes no rate negative and none huge.
func TestRestart(t *testing.T) {
	g := map[string]*process{"a": newProcess()}
	g["a"].answer("sum", serving.OK, 100_000, time.Millisecond)
	run(t, gateways(g), func(c *traffic.Collector) {
		every(5, func(i int) {
			if i == 3 {
				g["a"].restart()
			}
			g["a"].answer("sum", serving.OK, 100, time.Millisecond)
		})
		every(1, func(int) {})
		if got := lastOf(5, c.App("sum", time.Minute).Rate); !slices.Equal(got, []float64{100, 100, 100, 100, 100}) {
			t.Errorf("rates %v", got)
		}
	})
}

// TestAppsThatAreGone are kept for ten minutes, but while nobody can be read.
func TestAppsThatAreGone(t *testing.T) {
	g := map[string]*process{"a": newProcess()}
	run(t, gateways(g), func(c *traffic.Collector) {
		every(5, func(int) { g["a"].answer("sum", serving.OK, 100, time.Millisecond) })
		seen := func() bool {
			return slices.ContainsFunc(c.App("sum", 24*time.Hour).Rate, func(v *float64) bool { return v != nil })
		}
		g["a"].set(func(p *process) { p.fails = errAway })
		every(1200, func(int) {})
		if !seen() {
			t.Error("the past of apps went while nobody could be read")
		}
		g["a"].set(func(p *process) { p.fails = nil })
		every(5, func(int) {})
		g["a"].restart()
		every(500, func(int) {})
		if !seen() {
			t.Error("it went within 10 min")
		}
		every(180, func(int) {})
		if seen() {
			t.Error("it is still there")
		}
	})
}

// TestLooksDoNotPileUp has one process answer at once, and one take longer than a second.
func TestLooksDoNotPileUp(t *testing.T) {
	slow, quick := newProcess(), newProcess()
	slow.takes = 1500 * time.Millisecond
	run(t, gateways(map[string]*process{"slow": slow, "quick": quick}), func(c *traffic.Collector) {
		every(20, func(int) {
			slow.answer("sum", serving.OK, 10, time.Millisecond)
			quick.answer("sum", serving.OK, 10, time.Millisecond)
		})
		if quick.looks != 21 || slow.looks != 11 {
			t.Errorf("%d and %d looks in 21 s", quick.looks, slow.looks)
		}
		if got := c.Now().Apps[0].Rate; got < 19 || got > 20 {
			t.Errorf("%v answers a second", got)
		}
	})
}

// scheduler makes the gauges of a leading scheduler.
func scheduler(reg *obs.Registry) (set func(name string, v float64)) {
	leads := reg.Gauges("topsail_scheduler_leader", "Leads.")
	gauges := map[string]*obs.GaugeVec{}
	for _, name := range []string{"desired_replicas", "ready_replicas", "demand", "capacity", "blocked_seconds", "job_problem", "alarm"} {
		gauges[name] = reg.Gauges("topsail_scheduler_"+name, "A gauge.", "model", "version")
	}
	return func(name string, v float64) {
		if name == "leader" {
			leads.WithLabelValues().Set(v)
			return
		}
		gauges[name].WithLabelValues("m", "1").Set(v)
	}
}

func TestPools(t *testing.T) {
	leader, other := newProcess(), newProcess()
	set, setOther := scheduler(leader.reg), scheduler(other.reg)
	targets := func() []traffic.Target {
		return []traffic.Target{{Role: traffic.Scheduler, Name: "s1", Source: leader}, {Role: traffic.Scheduler, Name: "s2", Source: other}}
	}
	set("leader", 1)
	set("desired_replicas", 3)
	set("ready_replicas", 2)
	set("demand", 120)
	set("alarm", 1)
	set("blocked_seconds", 7)
	setOther("leader", 0)
	setOther("desired_replicas", 99)
	run(t, targets, func(c *traffic.Collector) {
		every(4, func(int) {})
		want := []api.Pool{{Model: "m", Version: "1", Desired: 3, Ready: 2, Demand: 120, Blocked: 7, Alarm: true}}
		if got := c.Pools(); !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		set("capacity", 250)
		set("demand", 300)
		every(4, func(int) {})
		s := c.Version(serving.ModelID{Model: "m", Version: "1"}, time.Minute)
		if got := fmt.Sprint(lastOf(1, s.Demand), lastOf(1, s.Capacity), lastOf(1, s.Desired), lastOf(1, s.Ready)); got != "[300] [250] [3] [2]" {
			t.Errorf("series end with %s", got)
		}
		if all := values(s.Capacity); !slices.Contains(all[len(all)-8:], -1) {
			t.Errorf("the capacity was known before it was measured: %v", all)
		}
		if slices.Contains(lastOf(6, s.Desired), -1) {
			t.Errorf("seconds between looks are unknown: %v", lastOf(6, s.Desired))
		}
		if name, _ := c.Leader(); name != "s1" {
			t.Errorf("%q leads", name)
		}
		set("leader", 0)
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if name, _ := c.Leader(); name != "" || len(c.Pools()) != 0 {
			t.Errorf("%q leads, with %v", name, c.Pools())
		}
	})
}

func TestMeasures(t *testing.T) {
	p := newProcess()
	labels := []string{"model", "version", "replica"}
	queue := p.reg.Gauges("topsail_sidecar_queue_length", "Queue.", labels...)
	wait := p.reg.Gauges("topsail_sidecar_wait_seconds", "Wait.", labels...)
	limit := p.reg.Gauges("topsail_sidecar_batch_limit", "Limit.", append(labels, "container")...)
	profile := p.reg.Gauges("topsail_sidecar_profile_seconds", "Profile.", append(labels, "container", "size")...)
	sizes := p.reg.Histograms("topsail_sidecar_batch_size", "Sizes.", obs.Sizes(), labels...)
	answers := p.reg.Counters("topsail_sidecar_answers_total", "Answers.", append(labels, "status")...)
	queue.WithLabelValues("m", "1", "r1").Set(3)
	wait.WithLabelValues("m", "1", "r1").Set(0.005)
	limit.WithLabelValues("m", "1", "r1", "0").Set(8)
	limit.WithLabelValues("m", "1", "r1", "1").Set(16)
	profile.WithLabelValues("m", "1", "r1", "0", "16").Set(0.004)
	profile.WithLabelValues("m", "1", "r1", "1", "16").Set(0.006)
	profile.WithLabelValues("m", "1", "r1", "0", "4").Set(0.002)
	answers.WithLabelValues("m", "1", "r1", "ok").Add(90)
	answers.WithLabelValues("m", "1", "r1", "full").Add(10)
	sizes.WithLabelValues("m", "1", "r1").Observe(2)
	there := atomic.Bool{}
	there.Store(true)
	targets := func() []traffic.Target {
		if !there.Load() {
			return nil
		}
		return []traffic.Target{{Role: traffic.Sidecar, Name: "r1", Source: p}}
	}
	run(t, targets, func(c *traffic.Collector) {
		look := func() api.Replica {
			r := api.Replica{ID: "x", Model: "m", Version: "1", Name: "r1", State: "ready"}
			c.Measured(&r)
			return r
		}
		want := api.Replica{ID: "x", Model: "m", Version: "1", Name: "r1", State: "ready", QueueLength: 3, Wait: 5000, BatchLimit: 16,
			BatchMean: 2, Answers: 100, Profile: []api.ProfilePoint{{Size: 4, Micros: 2000}, {Size: 16, Micros: 5000}}}
		if got := look(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		sizes.WithLabelValues("m", "1", "r1").Observe(10)
		sizes.WithLabelValues("m", "1", "r1").Observe(11)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := look(); got.BatchMean != 10.5 {
			t.Errorf("mean of the last batches %v", got.BatchMean)
		}
		p.set(func(p *process) { p.fails = errAway })
		time.Sleep(time.Minute)
		if got := look(); got.BatchLimit != 0 {
			t.Errorf("of a sidecar that has been away for a minute: %+v", got)
		}
		p.set(func(p *process) { p.fails = nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := look(); got.BatchLimit != 16 {
			t.Errorf("back: %+v", got)
		}
		there.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := look(); got.BatchLimit != 0 {
			t.Errorf("of a sidecar that is gone: %+v", got)
		}
	})
}

// TestSidecarsTakeTurns looks at 2,000 sidecars that answer slowly, and at a gateway
// that does not wait for them.
func TestSidecarsTakeTurns(t *testing.T) {
	gateway := newProcess()
	targets := []traffic.Target{{Role: traffic.Gateway, Name: "g", Source: gateway}}
	var sidecars []*process
	for i := range 2000 {
		p := &process{takes: 50 * time.Millisecond}
		sidecars = append(sidecars, p)
		targets = append(targets, traffic.Target{Role: traffic.Sidecar, Name: fmt.Sprint("r", i), Source: p})
	}
	run(t, func() []traffic.Target { return targets }, func(c *traffic.Collector) {
		every(30, func(int) { gateway.answer("sum", serving.OK, 10, time.Millisecond) })
		if gateway.looks != 31 {
			t.Errorf("the gateway was looked at %d times", gateway.looks)
		}
		for i, p := range sidecars {
			if p.looks < 2 || p.looks > 5 {
				t.Fatalf("sidecar %d was looked at %d times in half a minute", i, p.looks)
			}
		}
	})
}
