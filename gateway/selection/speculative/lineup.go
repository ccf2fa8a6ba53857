package speculative

import (
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// lineup is the order in which a policy has its models, and how many it asks at the most.
type lineup struct {
	places []place // sorted by id
	most   int     // 0: all
}

// place is a model's rank; without a version it is that of any version.
type place struct {
	serving.ModelID
	rank int
}

// newLineup is the order of spec.Models, else that of the links.
func newLineup(spec *serving.PolicySpec, links []string) lineup {
	names := spec.Models
	if len(names) == 0 {
		names = links
	}
	l := lineup{most: spec.Most, places: make([]place, len(names))}
	for rank, name := range names {
		p := place{rank: rank}
		p.Model, p.Version, _ = strings.Cut(name, ":")
		l.places[rank] = p
	}
	slices.SortFunc(l.places, func(a, b place) int { return a.Compare(b.ModelID) })
	return l
}

// arrange puts the candidates into the plan in their order: those that are ready, and
// the others only if none is.
func (l *lineup) arrange(candidates []selection.Candidate, plan *selection.Plan) {
	l.add(true, candidates, plan)
	if len(plan.Asks) == 0 {
		l.add(false, candidates, plan)
	}
}

func (l *lineup) add(onlyReady bool, candidates []selection.Candidate, plan *selection.Plan) {
	const none = -1
	at := plan.Scratch[:0] // by rank, the candidate's place
	for range l.places {
		at = append(at, none)
	}
	for i := range candidates {
		if onlyReady && !candidates[i].Ready {
			continue
		}
		if p := l.find(candidates[i].ModelID); p != nil && at[p.rank] == none {
			at[p.rank] = float64(i)
		}
	}
	for _, i := range at {
		if i != none {
			plan.Add(int(i), &candidates[int(i)], 1, 1)
		}
	}
	plan.Scratch = at[:0]
}

// find is the place of a version, else that of its model, else nil.
func (l *lineup) find(id serving.ModelID) *place {
	byID := func(p place, id serving.ModelID) int { return p.Compare(id) }
	i, found := slices.BinarySearchFunc(l.places, id, byID)
	if !found {
		i, _ = slices.BinarySearchFunc(l.places, serving.ModelID{Model: id.Model}, byID)
	}
	if i < len(l.places) && l.places[i].Model == id.Model {
		return &l.places[i]
	}
	return nil
}

// limit leaves out what is more than the most that may be asked.
func (l *lineup) limit(plan *selection.Plan) {
	if l.most > 0 && len(plan.Asks) > l.most {
		plan.Asks = plan.Asks[:l.most]
	}
}
