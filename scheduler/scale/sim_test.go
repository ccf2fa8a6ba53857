package scale_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/scheduler/window"
	"github.com/topsail-serving/topsail/serving"
)

const (
	simSLO   = 100 * time.Millisecond
	simSteps = 10 // in a second
)

// simLine gives a replica 380 queries a second within simSLO.
var simLine = serving.LatencyLine{Base: 12 * time.Millisecond, PerInput: 2 * time.Millisecond}

// decider is a policy that is simulated.
type decider func(scale.State, scale.Input) (serving.Decision, scale.State)

// sim runs a policy against a trace of queries. Replicas queue what they cannot
// answer at once, and what would wait for longer than half the SLO is a miss.
type sim struct {
	decide  decider
	spec    serving.ScaleSpec
	rate    func(second float64) float64
	start   time.Duration // of a replica
	delay   int           // whole seconds by which reports are late
	lost    func(second int) bool
	seconds int
	noise   bool
	seed    uint64
	count   int // at the beginning
}

// outcome is how a run went.
type outcome struct {
	counts   []int // by second
	queries  float64
	missed   float64
	replicas float64 // replica-seconds
	oracle   float64 // replica-seconds of one that knows the trace, and starts replicas in no time
	changes  int
}

func (o outcome) misses() float64 { return o.missed / max(1, o.queries) }
func (o outcome) cost() float64   { return o.replicas / max(1, o.oracle) }

func (s sim) run() outcome {
	random := rand.New(rand.NewPCG(s.seed, 2))
	epoch := time.Unix(1_700_000_000, 0).UTC()
	id := serving.ModelID{Model: "m", Version: "1"}
	version := &serving.Version{ModelID: id, Scale: &s.spec}
	windows := window.New()
	job := serving.Job{ModelID: id, Count: s.count}
	each := scale.Capacity(simLine, simSLO, 0)
	ready := s.count
	var state scale.State
	var starting []int // seconds at which replicas are ready
	var reports []serving.DemandReport
	var o outcome
	backlog, woken := 0.0, time.Time{}
	for second := range s.seconds {
		arrived, inFlight := 0.0, 0.0
		for step := range simSteps {
			a := s.rate(float64(second)+float64(step)/simSteps) / simSteps
			if s.noise {
				a = max(0, math.Round(a+math.Sqrt(a)*random.NormFloat64()))
			}
			arrived += a
			capacity := float64(ready) * each
			backlog += a - min(backlog+a, capacity/simSteps)
			if most := capacity * simSLO.Seconds() / 2; backlog > most {
				o.missed += backlog - most
				backlog = most
			}
			inFlight += (backlog + a*simSLO.Seconds()/2*simSteps) / simSteps
		}
		o.queries += arrived
		o.replicas += float64(max(job.Count, ready))
		o.oracle += math.Ceil(arrived / each)
		now := epoch.Add(time.Duration(second+1)*time.Second + 200*time.Millisecond)
		if arrived > 0 && ready == 0 {
			woken = now
		}
		reports = append(reports, s.reports(epoch, id, second, arrived, inFlight, ready)...)
		reports = s.take(windows, reports, now)
		var d serving.Decision
		d, state = s.decide(state, scale.Input{Now: now, Version: version, Role: scale.Current, SLO: simSLO,
			Demand: windows.Demand(id, now), Job: job, Ready: ready, Woken: woken})
		if d.To != job.Count {
			o.changes++
			state.Changed = now
			for range d.To - job.Count {
				starting = append(starting, second+int(s.start/time.Second))
			}
			job.Count = d.To
		}
		for len(starting) > 0 && starting[0] <= second {
			starting, ready = starting[1:], ready+1
		}
		for ready+len(starting) > job.Count { // those that start go first
			if len(starting) > 0 {
				starting = starting[:len(starting)-1]
			} else {
				ready--
			}
		}
		o.counts = append(o.counts, job.Count)
	}
	return o
}

// reports are those of one second, of one gateway and one sidecar.
func (s sim) reports(epoch time.Time, id serving.ModelID, second int, arrived, inFlight float64, ready int) []serving.DemandReport {
	if s.lost != nil && s.lost(second) {
		return nil
	}
	at := epoch.Add(time.Duration(second) * time.Second)
	gateway := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: "g"}, Second: at}
	if arrived > 0 {
		gateway.Demands = []serving.Demand{{ModelID: id, Arrivals: uint64(arrived), Concurrency: time.Duration(inFlight * float64(time.Second))}}
	}
	sidecar := serving.DemandReport{Source: serving.DemandSource{Role: "sidecar", Name: "s"}, Second: at}
	if ready > 0 {
		sidecar.Demands = []serving.Demand{{ModelID: id, Profile: simLine}}
	}
	return []serving.DemandReport{gateway, sidecar}
}

// take hands over the reports that are visible by now, and returns the others.
func (s sim) take(w *window.Windows, reports []serving.DemandReport, now time.Time) []serving.DemandReport {
	n := 0
	for n < len(reports) && !reports[n].Second.Add(time.Duration(s.delay+1)*time.Second).After(now) {
		n++
	}
	w.Take(reports[:n], w.From(now), now)
	return reports[n:]
}

// knative decides as Knative's autoscaler does, by the same capacity.
func knative(s scale.State, in scale.Input) (serving.Decision, scale.State) {
	d := serving.Decision{From: in.Job.Count, To: in.Job.Count}
	if in.Demand.Unknown != "" {
		return d, s
	}
	each := scale.Capacity(simLine, simSLO, 0) * 0.7
	stable, panic := int(math.Ceil(in.Demand.Stable.Rate/each)), int(math.Ceil(in.Demand.Panic.Rate/each))
	if panic >= 2*max(1, in.Ready) {
		s.Keep = in.Now.Add(window.Stable)
	}
	d.To = stable
	if in.Now.Before(s.Keep) {
		d.To = max(in.Job.Count, stable, panic)
	}
	d.To = max(d.To, in.Job.Count/2)
	if d.To == 0 && in.Demand.Quiet < 90*time.Second {
		d.To = min(1, max(in.Job.Count, panic))
	}
	d.To = min(d.To, in.Version.Scale.Max)
	return d, s
}

func step(at, from, to float64) func(float64) float64 {
	return func(t float64) float64 {
		if t < at {
			return from
		}
		return to
	}
}

// TestSimulation runs loads of many kinds, and compares what is missed and what it
// costs with Knative's rules on the same load, and with an oracle.
func TestSimulation(t *testing.T) {
	wave := func(period float64) func(float64) float64 {
		return func(t float64) float64 { return 4000 + 3000*math.Sin(t*2*math.Pi/period) }
	}
	// on is rate for the first part of every period, and rest for the other.
	on := func(part, period, rate, rest float64) func(float64) float64 {
		return func(t float64) float64 {
			if math.Mod(t, period) < part {
				return rate
			}
			return rest
		}
	}
	const s = time.Second
	for _, c := range []struct {
		name    string
		sim     sim
		misses  float64 // at most, of all queries
		cost    float64 // at most, of the oracle's
		changes int     // at most
	}{
		{"a step of ten times", sim{rate: step(120.5, 800, 8000), seconds: 400, start: 2 * s, count: 4}, 0.012, 1.45, 4},
		{"a step of one and a half", sim{rate: step(120.5, 3000, 4500), seconds: 400, start: 2 * s, count: 12}, 0, 1.45, 2},
		{"slow replicas", sim{rate: step(120.5, 800, 8000), seconds: 400, start: 30 * s, count: 4}, 0.09, 1.45, 4},
		{"a ramp", sim{rate: func(t float64) float64 { return 500 + 20*t }, seconds: 600, start: 5 * s, count: 3}, 0, 1.45, 20},
		{"a slow wave", sim{rate: wave(300), seconds: 1200, start: 5 * s, count: 12}, 0.001, 1.9, 45},
		{"a quick wave", sim{rate: wave(30), seconds: 600, start: 5 * s, count: 12}, 0.006, 2.5, 6},
		{"bursts", sim{rate: on(4, 40, 6000, 600), seconds: 600, start: 3 * s, count: 4}, 0.03, 6.5, 32},
		{"steady", sim{rate: step(0, 0, 2000), seconds: 1200, start: 5 * s, count: 8}, 0, 1.5, 0},
		{"few", sim{rate: step(0, 0, 5), seconds: 3600, start: 5 * s, count: 1}, 0, 1.1, 0},
		{"on and off", sim{rate: on(120, 240, 2000, 0), seconds: 1200, start: 5 * s}, 0.06, 2.5, 30},
		{"reports lost for a while", sim{rate: wave(300), seconds: 1200, start: 5 * s, count: 12, lost: func(s int) bool { return s%200 < 20 }}, 0.01, 2, 45},
	} {
		for delay := range 2 {
			c.sim.spec, c.sim.noise, c.sim.delay, c.sim.seed = serving.ScaleSpec{Max: 200}, true, delay, 1
			c.sim.decide = knative
			theirs := c.sim.run()
			c.sim.decide = scale.Decide
			ours := c.sim.run()
			t.Logf("%-25s late by %d s: missed %.4f, cost %.2f, %d changes; Knative's rules: %.4f, %.2f, %d", c.name, delay,
				ours.misses(), ours.cost(), ours.changes, theirs.misses(), theirs.cost(), theirs.changes)
			most := c.misses + 0.01*float64(delay)
			if ours.misses() > most || ours.cost() > c.cost || ours.changes > c.changes {
				t.Errorf("%s: more than %v missed, cost %v or %d changes", c.name, most, c.cost, c.changes)
			}
			if ours.misses() > theirs.misses() || ours.changes > theirs.changes {
				t.Errorf("%s: worse than Knative's rules", c.name)
			}
		}
	}
}

// TestHoldsInTheDark loses all reports under load, and the count stays.
func TestHoldsInTheDark(t *testing.T) {
	o := sim{
		decide: scale.Decide, spec: serving.ScaleSpec{Max: 50}, start: 5 * time.Second, count: 8, seconds: 900,
		rate: func(t float64) float64 { return 2000 - min(t, 299) },
		lost: func(second int) bool { return second >= 300 },
	}.run()
	for second, count := range o.counts[310:] {
		if count != o.counts[310] || count == 0 {
			t.Fatalf("%d replicas in second %d of darkness, at first %d", count, second, o.counts[310])
		}
	}
}
