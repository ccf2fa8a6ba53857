package rollout

import (
	"fmt"
	"strings"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// settle discounts the past, and withdraws versions that are worse than the baseline.
func (v *Versions) settle(s *selection.State) *selection.State {
	var baseline conduct
	base := v.base(s)
	for i := range s.Models {
		c := conductOf(&s.Models[i])
		c.fade(v.judge.memory)
		c.store(&s.Models[i])
		if i == base {
			baseline = c
		}
	}
	for i := range s.Models {
		m := &s.Models[i]
		c := conductOf(m)
		if _, tried := v.tried[m.Version]; !tried || c.withdrawn {
			continue
		}
		if why := v.judge.finds(&c, &baseline); why != "" {
			c.withdrawn = true
			c.store(m)
			s.Note += fmt.Sprintf(withdrawn+"%s. ", m.Version, why)
		}
	}
	return s
}

// Withdrawn are the versions that a state says were withdrawn in this trial.
func (v *Versions) Withdrawn(s *selection.State) (ids []serving.ModelID) {
	for i := range s.Models {
		if id := s.Models[i].ModelID; v.withdrawn(s, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// withdrawn says whether a version was withdrawn in this trial. The note tells of all that
// were, so that there is nothing to look for without it.
func (v *Versions) withdrawn(s *selection.State, id serving.ModelID) bool {
	if s.Note == "" || !v.holds(s) {
		return false
	}
	i := s.FindVersion(id)
	return i >= 0 && len(s.Models[i].Vector) >= 3 && s.Models[i].Vector[2] > 0
}

// withdrawn begins the sentence about a version that was withdrawn.
const withdrawn = "version %s was withdrawn: "

// unsaid is a note without what it says of a version.
func unsaid(note, version string) string {
	var rest strings.Builder
	for sentence := range strings.SplitAfterSeq(note, ". ") {
		if !strings.HasPrefix(sentence, fmt.Sprintf(withdrawn, version)) {
			rest.WriteString(sentence)
		}
	}
	return rest.String()
}
