package rollout

import (
	"math"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// New implements selection.Learner.
func (v *Versions) New(models []serving.ModelID) *selection.State {
	s := selection.NewState(serving.PolicyVersions, models)
	trial{name: v.trial}.store(s)
	return s
}

// Observe implements selection.Observer: it counts failures and missed deadlines, and
// begins the ramp the first time.
func (v *Versions) Observe(s *selection.State, tallies []selection.Tally, now time.Time) *selection.State {
	t := v.trialOf(s)
	if len(tallies) == 0 && t.began != 0 {
		return s
	}
	s = v.open(s)
	t.observed = max(t.observed, seconds(now))
	if t.began == 0 {
		t.began = t.observed
	}
	t.store(s)
	for _, tally := range tallies {
		bad := max(tally.Failures, 0) + max(tally.Missed, 0)
		outcomes := bad + max(tally.Answers, 0)
		if i := s.FindVersion(tally.ModelID); i >= 0 && outcomes > 0 && outcomes <= math.MaxInt64 {
			c := conductOf(&s.Models[i])
			c.outcomes, c.bad, c.seen = c.outcomes+outcomes, c.bad+bad, t.observed
			c.store(&s.Models[i])
		}
	}
	return v.settle(s)
}

// Train implements selection.Learner.
func (v *Versions) Train(s *selection.State, f *selection.Feedback) *selection.State {
	s = v.open(s)
	for i := range f.Outcomes {
		o := &f.Outcomes[i]
		if at := s.FindVersion(o.ModelID); at >= 0 && o.Judged && o.Loss >= 0 && o.Loss <= 1 {
			c := conductOf(&s.Models[at])
			c.judged, c.loss = c.judged+1, c.loss+o.Loss
			c.store(&s.Models[at])
		}
	}
	return v.settle(s)
}

// open is a copy of the state to change, afresh if it is of another trial.
func (v *Versions) open(s *selection.State) *selection.State {
	s = s.Clone()
	if v.holds(s) {
		return s
	}
	trial{name: v.trial}.store(s)
	s.Note = ""
	for i := range s.Models {
		(&conduct{}).store(&s.Models[i])
	}
	return s
}

// base is the place of the version that the others are tried against, or -1. Of those
// that are not the canary it is the one that was asked last: the serving version, also
// when that is another one than when the trial began.
func (v *Versions) base(s *selection.State) int {
	base := -1
	for i := range s.Models {
		m := &s.Models[i]
		if _, tried := v.tried[m.Version]; tried || v.baseline != "" && m.Version != v.baseline {
			continue
		}
		if base < 0 || m.Weight >= s.Models[base].Weight {
			base = i
		}
	}
	return base
}

// AddModel implements selection.Learner. A version is judged alone: it begins with nothing known
// of it.
func (v *Versions) AddModel(s *selection.State, id serving.ModelID) *selection.State {
	if s.FindVersion(id) >= 0 {
		return s
	}
	s = s.Clone()
	s.Insert(selection.ModelState{ModelID: id})
	s.Note = unsaid(s.Note, id.Version)
	return s
}

// UpdateVersion implements selection.Learner: the versions that were there stay.
func (v *Versions) UpdateVersion(s *selection.State, id serving.ModelID) *selection.State {
	return v.AddModel(s, id)
}
