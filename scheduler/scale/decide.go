package scale

import (
	"fmt"
	"math"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Decide says how many replicas the version shall have, and why: To equals From
// where nothing is to change. Outcome, leader and fence are the caller's to fill
// in, and so is State.Changed once the count has changed.
func Decide(s State, in Input) (serving.Decision, State) {
	s.observe(&in)
	d := draft{Input: &in, state: &s, to: in.Job.Count}
	d.decide()
	return serving.Decision{
		ModelID: in.Version.ModelID, At: in.Now,
		From: in.Job.Count, To: d.to, Rule: d.rule, Reason: d.reason,
	}, s
}

// draft is a decision in the making.
type draft struct {
	*Input
	state  *State
	spec   serving.ScaleSpec // with defaults; of a fixed number, that number as min and max
	lo, hi int

	to     int
	rule   string
	reason string
}

func (d *draft) because(to int, rule, format string, args ...any) {
	d.to, d.rule, d.reason = to, rule, fmt.Sprintf(format, args...)
}

func (d *draft) decide() {
	if pin := d.Version.Pin; pin.Holds(d.Now) {
		d.pinned(pin)
		return
	}
	fixed := d.Version.Scale == nil
	d.readSpec()
	if d.Role == Old && d.retire() {
		return
	}
	switch {
	case fixed:
		d.fixed()
	case d.Demand.Unknown != "":
		d.because(d.to, ruleUnknown, "the demand is unknown: %s", d.Demand.Unknown)
	default:
		d.scale()
	}
	d.wake()
	d.bound()
}

func (d *draft) pinned(pin *serving.Pin) {
	until := ""
	if !pin.Until.IsZero() {
		until = " until " + pin.Until.UTC().Format(time.RFC3339)
	}
	if pin.Reason != "" {
		until += ": " + pin.Reason
	}
	if pin.Count == serving.Paused {
		d.because(d.to, rulePin, "scaling is paused%s", until)
		return
	}
	d.because(pin.Count, rulePin, "an operator set %d%s", pin.Count, until)
}

// readSpec fills in spec and the bounds, which depend on the version's role.
func (d *draft) readSpec() {
	v := d.Version
	d.spec = serving.ScaleSpec{Min: v.Replicas, Max: v.Replicas}
	if v.Scale != nil {
		d.spec = *v.Scale
	}
	d.spec = withDefaults(d.spec)
	d.lo, d.hi = d.spec.Min, d.spec.Max
	switch d.Role {
	case Rollout:
		d.lo = max(d.lo, min(max(1, d.Behind), d.hi))
	case Old:
		d.lo, d.hi = d.Job.Count, max(d.hi, d.Job.Count)
	}
}

// retire decides about an old version, and says whether it is done with: without a
// query for long enough, it goes. Until then it keeps what it has.
func (d *draft) retire() bool {
	kept := max(d.spec.Idle.Std(), Kept)
	quiet := d.Now.Sub(later(d.state.Active, d.state.Old))
	settled := d.Settled || d.Now.Sub(d.state.Old) >= settles
	if d.Job.Count == 0 || d.Demand.Unknown != "" || !settled || quiet < kept {
		return false
	}
	d.because(0, ruleOld, "another version serves, and there was no query for %s", brief(quiet))
	return true
}

// fixed is for a version without a ScaleSpec.
func (d *draft) fixed() {
	if d.Role != Old {
		d.because(d.hi, ruleFixed, "the version has a fixed number of replicas, %d", d.hi)
		return
	}
	d.because(d.to, ruleOld, "kept for a rollback")
	if d.Demand.Unknown == "" && d.Demand.Panic.Rate > 0 {
		d.because(d.hi, ruleFixed, "it still has queries, and a fixed number of replicas, %d", d.hi)
	}
}

// wake sees to it that a version with queries has a replica, at once and whatever
// is known of its demand: the wake itself is knowledge.
func (d *draft) wake() {
	if d.to == 0 && d.Job.Count == 0 && d.hi > 0 && d.Now.Sub(d.Woken) < wakes && !d.Woken.Before(d.state.Changed) {
		d.because(1, ruleWake, "a gateway has queries and no replica")
	}
}

// bound holds the count within the bounds, which no step or cooldown delays.
func (d *draft) bound() {
	switch to := min(max(d.to, d.lo), d.hi); {
	case to == d.to:
	case d.Role == Rollout && to > d.to && to > d.spec.Min:
		d.because(to, ruleRollout, "the version is rolled out: as many as the %d that serve now, and at least 1", d.Behind)
	case d.Role == Old:
		d.because(to, ruleOld, "kept for a rollback, after %s without a query", brief(d.Now.Sub(d.state.Active)))
	case to > d.to:
		d.because(to, ruleMin, "at least %d; %s", to, d.reason)
	default:
		d.because(to, ruleMax, "at most %d; %s", to, d.reason)
	}
}

// brief is a duration for people.
func brief(d time.Duration) string { return d.Round(time.Second).String() }

func ceil(x float64) int { return int(math.Ceil(min(x, 2*serving.MaxReplicas))) }
