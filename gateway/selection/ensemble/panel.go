package ensemble

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// panel is the models that an ensemble asks. It is immutable.
type panel struct {
	members []member // sorted by model
	closed  bool     // no other is asked
	most    int      // asked for one query; 0: all
	byCost  bool
}

// member is one model with its standing before anything is learned.
type member struct {
	model  string
	place  int     // in the order that the policy or else the links give
	weight float64 // as declared
}

// newPanel reads which models a policy asks. A model whose weight is not declared weighs as
// much as the others do on average; one whose weight is 0 is not asked.
func newPanel(spec *serving.PolicySpec, links []string) panel {
	p := panel{closed: len(spec.Models) > 0, most: spec.Most, byCost: spec.ByCost}
	names := links
	if p.closed {
		names = spec.Models
	}
	weights := map[string]float64{}
	average := 1.0
	for name, w := range spec.Weights {
		weights[unpinned(name)] = w
	}
	if len(weights) > 0 {
		average = 0
		for _, w := range weights {
			average += w / float64(len(weights))
		}
	}
	for i, name := range names {
		m := member{model: unpinned(name), place: i, weight: average}
		if w, declared := weights[m.model]; declared {
			m.weight = w
		}
		p.members = append(p.members, m)
	}
	slices.SortStableFunc(p.members, func(a, b member) int { return cmp.Compare(a.model, b.model) })
	return p
}

// unpinned is the model of a name that may pin a version.
func unpinned(name string) string {
	model, _, _ := strings.Cut(name, ":")
	return model
}

// has says whether a model is asked at all.
func (p *panel) has(model string) bool {
	_, found := slices.BinarySearchFunc(p.members, model, func(m member, model string) int { return cmp.Compare(m.model, model) })
	return found || !p.closed
}

// Select implements selection.Policy, for those that learn nothing: models count as declared.
func (p *panel) Select(_ *selection.State, _ *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	p.addCandidates(candidates, plan)
	p.rank(candidates, plan)
	share(plan)
}

// addCandidates adds the candidates that can be asked to the plan, in their own order, with
// their declared weights, and leaves their places in plan.Scratch. Both lists are
// sorted by model, so that it walks through them once.
func (p *panel) addCandidates(candidates []selection.Candidate, plan *selection.Plan) {
	at, ready := 0, false
	for i := range candidates {
		c := &candidates[i]
		for at < len(p.members) && p.members[at].model < c.Model {
			at++
		}
		m := member{place: len(p.members), weight: 1}
		known := at < len(p.members) && p.members[at].model == c.Model
		if known {
			m = p.members[at]
		}
		plan.Scratch = append(plan.Scratch, float64(m.place))
		if m.weight > 0 && (known || !p.closed) {
			plan.Add(i, c, 1, m.weight)
			ready = ready || c.Ready
		}
	}
	if ready {
		plan.Asks = slices.DeleteFunc(plan.Asks, func(a selection.Ask) bool { return !candidates[a.Candidate].Ready })
	}
}

// weigh gives each ask the weight that the state has for its model, 0 without an entry.
func weigh(s *selection.State, candidates []selection.Candidate, plan *selection.Plan) {
	var memory [32]int
	places := s.Places(memory[:0], candidates)
	for i := range plan.Asks {
		a := &plan.Asks[i]
		a.Weight = 0
		if at := places[a.Candidate]; at >= 0 {
			a.Weight = s.Models[at].Weight
		}
	}
}

// rank puts the asks of the largest weights first, for their cost if the policy says
// so, then those that are named first, and drops those that are too many.
func (p *panel) rank(candidates []selection.Candidate, plan *selection.Plan) {
	worth := func(a *selection.Ask) float64 {
		if p.byCost {
			return math.Abs(a.Weight) / candidates[a.Candidate].Cost
		}
		return math.Abs(a.Weight)
	}
	places := plan.Scratch
	slices.SortFunc(plan.Asks, func(a, b selection.Ask) int {
		if x, y := worth(&a), worth(&b); x != y {
			return cmp.Compare(y, x)
		}
		return cmp.Or(cmp.Compare(places[a.Candidate], places[b.Candidate]), cmp.Compare(a.Candidate, b.Candidate))
	})
	if p.most > 0 {
		plan.Asks = plan.Asks[:min(p.most, len(plan.Asks))]
	}
}

// share makes the weights of the asks, all above 0, add up to 1.
func share(plan *selection.Plan) {
	total := 0.0
	for i := range plan.Asks {
		total += plan.Asks[i].Weight
	}
	for i := range plan.Asks {
		plan.Asks[i].Weight /= total
	}
}
