package scale

import (
	"fmt"
	"math"

	"github.com/topsail-serving/topsail/scheduler/window"
	"github.com/topsail-serving/topsail/serving"
)

// meter turns demand into replicas.
type meter struct {
	unit string                    // what is counted
	each float64                   // what a replica bears; 0: unknown
	aim  float64                   // the share of it to aim at
	of   func(window.Mean) float64 // what is asked for
}

func (d *draft) meter() meter {
	m := meter{unit: "queries/s", each: d.spec.Target, aim: d.spec.Utilisation, of: func(w window.Mean) float64 { return w.Rate }}
	switch d.spec.Metric {
	case serving.ScaleOnCapacity:
		m.each = Capacity(d.state.Profile, d.SLO, d.Version.Batch.MaxSize)
	case serving.ScaleOnConcurrency:
		m.unit, m.of = "queries in flight", func(w window.Mean) float64 { return w.InFlight }
	}
	return m
}

// need is how many replicas, and fractions of one, the demand asks for.
func (m meter) need(w window.Mean) float64 { return m.of(w) / (m.each * m.aim) }

// exceeds says whether the demand uses count replicas to more than the share, and
// by more than chance: that of queries that come independently.
func (m meter) exceeds(w window.Mean, count int, share float64) bool {
	bears := m.each * share * float64(count*w.Seconds)
	return m.of(w)*float64(w.Seconds) > bears+chance*math.Sqrt(bears)
}

func (m meter) reason(w window.Mean, over string) string {
	diverted := ""
	if w.Diverted > 0 {
		diverted = fmt.Sprintf(" (%.4g queries/s could not be answered in time and went to a model ranked after it)", w.Diverted)
	}
	return fmt.Sprintf("%.4g %s over %s%s need %.2f replicas of %.4g at %.0f %%", m.of(w), m.unit, over, diverted, m.need(w), m.each, 100*m.aim)
}

// scale decides by the demand, which is known.
func (d *draft) scale() {
	m := d.meter()
	if m.each == 0 {
		d.unmeasured()
		return
	}
	d.because(d.to, d.spec.Metric, "%s", m.reason(d.Demand.Stable, "60 s"))
	if d.asleep() {
		return
	}
	d.panic(m)
	d.worksOff()
	if !d.up(m) {
		d.down(m)
	}
	d.idle()
}

// unmeasured decides while it is not known what a replica can do.
func (d *draft) unmeasured() {
	d.because(d.to, ruleUnmeasured, "the capacity of a replica is not measured yet")
	if d.SLO == 0 {
		d.reason = "no app uses the version"
	}
	if d.to == 0 && d.Demand.Panic.Rate > 0 {
		d.because(1, ruleWake, "there are queries and no replica")
	}
	d.idle()
}

// up raises the count to what the stable window needs or, in a surge, to what a
// short one needs. Replicas that still start count, so that nothing is asked for
// twice. It says whether more are needed.
func (d *draft) up(m meter) bool {
	count := d.Job.Count
	if need := m.need(d.Demand.Stable); need > float64(count)*(1+d.spec.DeadBand) {
		d.to = ceil(need)
	}
	share := d.surge(m)
	if w := d.Demand.Panic; m.exceeds(w, count, share) && ceil(m.need(w)) > d.to {
		d.because(ceil(m.need(w)), rulePanic, "%s", m.reason(w, "6 s"))
	}
	if w := d.Demand.Burst; m.exceeds(w, count, share) && ceil(m.need(w)) > d.to {
		d.because(ceil(m.need(w)), ruleBurst, "%s", m.reason(w, "2 s"))
	}
	if w := d.backlog(); m.need(w) > float64(count)*(1+d.spec.DeadBand) && ceil(m.need(w)) > d.to {
		d.because(ceil(m.need(w)), ruleBacklog, "%s: %s", d.waits(), m.reason(w, "6 s and for it"))
	}
	switch limit := ceil(float64(max(count, 1)) * d.spec.StepUp); {
	case d.to <= count:
		return false
	case count > 0 && d.Now.Sub(d.state.Changed) < d.spec.CooldownUp.Std():
		d.because(count, ruleCooldown, "%s; the last change was less than %s ago", d.reason, d.spec.CooldownUp.Std())
	case d.to > limit:
		d.because(limit, d.rule, "%s; one step goes to %d", d.reason, limit)
	}
	return true
}

// surge returns the share of what the replicas bear from which on a short window
// decides. A surge begins where one takes half of the reserve. While it lasts, the
// count is raised to its full height rather than again after a minute.
func (d *draft) surge(m meter) float64 {
	count, half := d.Job.Count, (1+m.aim)/2
	if m.exceeds(d.Demand.Panic, count, half) || m.exceeds(d.Demand.Burst, count, half) {
		d.state.Surge = d.Now.Add(2 * window.Burst)
	}
	if d.Now.Before(d.state.Surge) {
		return min(half, m.aim*(1+d.spec.DeadBand/2))
	}
	return half
}

// panic begins, or goes on, while the panic window needs twice what is ready.
func (d *draft) panic(m meter) {
	if m.need(d.Demand.Panic) >= panics*float64(max(1, d.Ready)) {
		d.state.Keep, d.state.Kept = d.Now.Add(window.Stable), rulePanic
	}
}

// down lowers the count to what the busiest moment of the stable window needs: a
// mean would hide bursts that return.
func (d *draft) down(m meter) {
	count := d.Job.Count
	need := max(m.need(d.Demand.Stable), m.need(d.Demand.Peak), m.need(d.backlog()))
	if need >= float64(count)*(1-d.spec.DeadBand) || max(1, ceil(need)) >= count {
		return
	}
	seconds := window.Stable.Seconds()
	switch limit := int(float64(count) / d.spec.StepDown); {
	case d.Now.Before(d.state.Keep):
		d.because(count, d.state.Kept, "%s, but %s", d.reason, d.kept())
	case float64(d.Demand.Stable.Seconds) < enough*seconds:
		d.because(count, ruleUnknown, "%s, but of the last %.0f s only %d are known", d.reason, seconds, d.Demand.Stable.Seconds)
	case d.Now.Sub(d.state.Changed) < d.spec.CooldownDown.Std():
		d.because(count, ruleCooldown, "%s, but the last change was less than %s ago", d.reason, d.spec.CooldownDown.Std())
	default:
		d.because(max(1, limit, ceil(need)), d.spec.Metric, "%s, in the busiest 6 s %.2f", d.reason, m.need(d.Demand.Peak))
	}
}

// kept says what State.Kept means.
func (d *draft) kept() string {
	switch d.state.Kept {
	case ruleBacklog:
		return fmt.Sprintf("a backlog was worked off less than %s ago", brief(caught))
	case ruleRollout:
		return "it is less than a minute since another version began to serve"
	}
	return fmt.Sprintf("it is less than a minute since the demand was %d times what was ready", panics)
}

// asleep says whether the version is at zero and was not asked since. What the
// stable window still holds has been answered.
func (d *draft) asleep() bool {
	return d.Job.Count == 0 && !d.state.Active.After(d.state.Changed)
}

// idle takes the last replicas away from a version that is not asked.
func (d *draft) idle() {
	idle := d.Now.Sub(later(d.state.Active, d.state.Changed))
	if d.lo > 0 || d.Job.Count == 0 || d.to > d.Job.Count || d.Role == Old || idle < d.spec.Idle.Std() {
		return
	}
	d.because(0, ruleIdle, "no query for %s", brief(idle))
}
