package rollout

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
)

// Explain implements selection.Learner. A worth is the share of answers that came in
// time, times one less their mean loss; of what is not known yet, it is the mean of the
// others. Shares are those of the last time that something was observed.
func (v *Versions) Explain(s *selection.State) []selection.Standing {
	standings := make([]selection.Standing, len(s.Models))
	unknown := v.meanWorth(s)
	for i := range s.Models {
		c := conductOf(&s.Models[i])
		standings[i].Worth = unknown
		if worth, known := c.worth(); known {
			standings[i].Worth = worth
		}
	}
	v.shares(s, standings)
	return standings
}

func (v *Versions) meanWorth(s *selection.State) float64 {
	total, n := 0.0, 0.0
	for i := range s.Models {
		c := conductOf(&s.Models[i])
		if worth, known := c.worth(); known {
			total, n = total+worth, n+1
		}
	}
	if n == 0 {
		return 1
	}
	return total / n
}

// shares are those of the versions in their trial, what is withdrawn handing its own on.
func (v *Versions) shares(s *selection.State, standings []selection.Standing) {
	observed := time.UnixMilli(int64(v.trialOf(s).observed * 1000))
	progress, base, total := v.progress(s, observed), v.base(s), 0.0
	for i := range s.Models {
		m := &s.Models[i]
		if _, tried := v.tried[m.Version]; (tried || i == base) && !v.withdrawn(s, m.ModelID) {
			standings[i].Share = v.share(m.Version, progress)
			total += standings[i].Share
		}
	}
	for i := range standings {
		if total > 0 {
			standings[i].Share /= total
		} else {
			standings[i].Share = 1 / float64(len(standings)) // only versions that were withdrawn are left
		}
	}
}
