package rollout

import (
	"slices"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Shadow answers with one model, as Single does, and asks others in its shadow for a
// share of the queries. They are neither answered with nor waited for. A shadow that is
// not ready is left out.
type Shadow struct {
	Single
	shadows []serving.ModelID // sorted; none: all others
	share   float64
}

// NewShadow makes the policy "shadow": spec.Model answers (the first linked one by
// default), spec.Models are the shadows (by default all others), asked for spec.Share
// of the queries (by default all).
func NewShadow(spec serving.PolicySpec, links []string) *Shadow {
	s := &Shadow{Single: *NewSingle(spec, links), shadows: parse(spec.Models), share: spec.Share}
	slices.SortFunc(s.shadows, serving.ModelID.Compare)
	if s.share == 0 {
		s.share = 1
	}
	return s
}

// Select implements selection.Policy.
func (s *Shadow) Select(_ *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	answers := s.answering(candidates)
	if answers < 0 {
		return
	}
	plan.Alone = true
	plan.Add(answers, &candidates[answers], 1, 1)
	if s.share < 1 && q.Rand.Float64() >= s.share {
		return
	}
	for i := range candidates {
		if c := &candidates[i]; i != answers && c.Ready && s.isShadow(c.ModelID) {
			plan.Add(i, c, s.share, 0)
			plan.Asks[len(plan.Asks)-1].Shadow = true
		}
	}
}

// answering is the place of the version that answers. A version of its model that is named as a
// shadow answers only when there is no other.
func (s *Shadow) answering(candidates []selection.Candidate) int {
	picked := s.pick(candidates)
	for i := max(picked, 0); i < len(candidates) && picked >= 0 && candidates[i].Model == candidates[picked].Model; i++ {
		if !s.names(candidates[i].ModelID) {
			return i
		}
	}
	return picked
}

func (s *Shadow) isShadow(id serving.ModelID) bool {
	return len(s.shadows) == 0 || s.names(id) || s.names(serving.ModelID{Model: id.Model})
}

func (s *Shadow) names(id serving.ModelID) bool {
	_, named := slices.BinarySearchFunc(s.shadows, id, serving.ModelID.Compare)
	return named
}
