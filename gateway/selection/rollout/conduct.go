package rollout

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
)

// conduct is how a version has done in a trial: the entry of a state, read. The past
// fades: counts are scaled down to the judge's memory.
type conduct struct {
	outcomes, bad float64 // answers with failures and missed deadlines, and those two
	judged, loss  float64 // answers whose loss is known, and the sum of it
	seen          float64 // when it last had an outcome, in seconds
	withdrawn     bool
}

func conductOf(m *selection.ModelState) conduct {
	c := conduct{outcomes: max(m.Count, 0), seen: m.Weight}
	c.bad = min(max(m.Sum, 0), c.outcomes)
	if len(m.Vector) >= 3 {
		c.judged = max(m.Vector[0], 0)
		c.loss = min(max(m.Vector[1], 0), c.judged)
		c.withdrawn = m.Vector[2] > 0
	}
	return c
}

func (c *conduct) store(m *selection.ModelState) {
	m.Count, m.Sum, m.Weight = c.outcomes, c.bad, c.seen
	m.Vector = []float64{c.judged, c.loss, 0}
	if c.withdrawn {
		m.Vector[2] = 1
	}
}

// fade forgets what is beyond the memory, of all that was seen alike.
func (c *conduct) fade(memory float64) {
	if c.outcomes > memory {
		c.outcomes, c.bad = memory, c.bad/c.outcomes*memory
	}
	if c.judged > memory {
		c.judged, c.loss = memory, c.loss/c.judged*memory
	}
}

// worth is the share of answers that came in time, less what they lost. It is not known
// of a version without any.
func (c *conduct) worth() (worth float64, known bool) {
	worth = 1
	if c.outcomes > 0 {
		worth *= 1 - c.bad/c.outcomes
	}
	if c.judged > 0 {
		worth *= 1 - c.loss/c.judged
	}
	return worth, c.outcomes > 0 || c.judged > 0
}

// trial is what a state says beside its versions: which trial it is of, when that began,
// and when something was last observed in it, in seconds.
type trial struct{ name, began, observed float64 }

// trialOf is the trial of a state, which is empty if it is of another policy.
func (v *Versions) trialOf(s *selection.State) trial {
	if !v.holds(s) {
		return trial{name: v.trial}
	}
	return trial{s.Numbers[0], s.Numbers[1], s.Numbers[2]}
}

// holds says whether what a state knows is of this trial.
func (v *Versions) holds(s *selection.State) bool {
	return len(s.Numbers) >= 3 && s.Numbers[0] == v.trial
}

func (t trial) store(s *selection.State) { s.Numbers = []float64{t.name, t.began, t.observed} }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
