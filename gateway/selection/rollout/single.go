package rollout

import (
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Single asks one model: the one that is named, else the first linked one that is ready.
// If the named one is not there, links take its place in their order.
type Single struct {
	prefer []serving.ModelID // the most wanted first; without a version, any will do
	named  bool              // the first is asked whether it is ready or not
}

// NewSingle makes the policy "single".
func NewSingle(spec serving.PolicySpec, links []string) *Single {
	s := &Single{named: spec.Model != ""}
	if s.named {
		links = append([]string{spec.Model}, links...)
	}
	s.prefer = parse(links)
	return s
}

func parse(names []string) []serving.ModelID {
	ids := make([]serving.ModelID, len(names))
	for i, name := range names {
		ids[i].Model, ids[i].Version, _ = strings.Cut(name, ":")
	}
	return ids
}

// Select implements selection.Policy.
func (s *Single) Select(_ *selection.State, _ *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	plan.Alone = true
	if i := s.pick(candidates); i >= 0 {
		plan.Add(i, &candidates[i], 1, 1)
	}
}

// pick is the place of the one to ask, or -1.
func (s *Single) pick(candidates []selection.Candidate) int {
	asleep := -1
	for rank, id := range s.prefer {
		i := find(candidates, id)
		switch {
		case i < 0:
		case candidates[i].Ready || s.named && rank == 0:
			return i
		case asleep < 0:
			asleep = i
		}
	}
	if len(s.prefer) == 0 && len(candidates) > 0 {
		return 0 // nothing is known of the links: there is one candidate
	}
	return asleep
}

// find is the place of a version, else of the first of its model, else -1.
func find(candidates []selection.Candidate, id serving.ModelID) int {
	i, found := slices.BinarySearchFunc(candidates, id, compare)
	if !found && id.Version != "" {
		i, _ = slices.BinarySearchFunc(candidates, serving.ModelID{Model: id.Model}, compare)
	}
	if i < len(candidates) && candidates[i].Model == id.Model {
		return i
	}
	return -1
}

func compare(c selection.Candidate, id serving.ModelID) int { return c.ModelID.Compare(id) }

// Combine implements selection.Policy.
func (s *Single) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	if len(plan.Asks) == 0 {
		return unanswered()
	}
	return first(plan, answers, 1, at)
}

// relieved says whether a model has answered.
func relieved(answers []selection.Answer) bool {
	return slices.ContainsFunc(answers, func(a selection.Answer) bool { return a.Output != nil })
}

func unanswered() selection.Decision {
	return selection.Decision{Done: true, Verdict: selection.Verdict{
		Failure: &serving.Failure{Cause: serving.NoReplica}, Ended: selection.EndedAll,
	}}
}

// first answers with the first output of the first n asks, each of which is asked when
// those before it have failed.
func first(plan *selection.Plan, answers []selection.Answer, n int, at selection.Moment) selection.Decision {
	for i := range n {
		a := &answers[i]
		switch {
		case a.Output != nil:
			return selection.Decision{Done: true, Verdict: selection.Verdict{
				Output: a.Output, Model: plan.Asks[i].ID, Confidence: selection.Confidence(a.Output), Ended: selection.EndedAll,
			}}
		case a.Failure == nil && at.Final && !relieved(answers[i+1:n]):
			return selection.Decision{Done: true, Verdict: selection.Verdict{
				Failure: answers[0].Failure, Model: plan.Asks[0].ID, Ended: selection.EndedDeadline,
			}}
		case a.Failure == nil && at.Final: // one behind it has answered
		case a.Failure == nil:
			return selection.Decision{Open: i + 1}
		}
	}
	return selection.Decision{Done: true, Verdict: selection.Verdict{
		Failure: answers[0].Failure, Model: plan.Asks[0].ID, Ended: selection.EndedAll,
	}}
}
