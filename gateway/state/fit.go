package state

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// fit brings a state in line with the app's models: a model that is missing is taken in,
// one in another version is moved to this one unless its version is to stay, and one
// that is no longer linked goes to the state's past, from where it returns. (What a kind
// knows of a model is in the model's entry, so that it can go without the kind.) A
// policy that chooses between versions forgets what it knows of one that is another
// definition by now, as does every other kind of a new version, and keeps those that are not named any more, as
// long as there is room: they may come back. A state that fits is returned as it is,
// and s is never changed.
func (a *App) fit(s *selection.State, versionsStay bool, now time.Time) (fitted *selection.State, err error) {
	defer recovered(&err, "take in the app's models")
	s = a.forget(s, now)
	for _, d := range a.models {
		switch at := a.place(s, d.ModelID); {
		case at < 0:
			s = a.take(s, d)
		case a.byVersion && s.Models[at].Generation != d.Generation:
			s = a.learner.AddModel(without(s, at), d.ModelID)
		case s.Models[at].Definition() != d && !versionsStay:
			s = a.learner.UpdateVersion(s, d.ModelID)
		default:
			continue
		}
		s = a.mark(s, d)
	}
	if a.byVersion && len(s.Models) <= selection.MaxModels || !a.byVersion && len(s.Models) == len(a.models) {
		return s, nil
	}
	return a.prune(s, now), nil
}

// take takes in a model: as it was, where the past has it, perhaps as another version by now.
func (a *App) take(s *selection.State, d serving.Definition) *selection.State {
	joined := a.learner.AddModel(s, d.ModelID)
	i := slices.IndexFunc(s.Past, func(p selection.PastModel) bool { return p.Model == d.Model })
	at := a.place(joined, d.ModelID)
	if i < 0 || at < 0 || a.byVersion {
		return joined
	}
	back := s.Past[i].ModelState
	back.Weight = sum(back.Weight, joined.Models[at].Weight)
	joined = joined.Clone()
	joined.Models[at], joined.Past = back, slices.Delete(slices.Clone(s.Past), i, i+1)
	if back.Definition() != d {
		joined = a.learner.UpdateVersion(joined, d.ModelID)
	}
	return joined
}

// forget is the state without what has been in its past for too long.
func (a *App) forget(s *selection.State, now time.Time) *selection.State {
	old := 0
	for old < len(s.Past) && now.Sub(time.Unix(s.Past[old].Left, 0)) > a.keep {
		old++
	}
	if old == 0 {
		return s
	}
	less := *s
	less.Past = slices.Clone(s.Past[old:])
	return &less
}

// sum is the sum of two numbers, or the first if it is not finite.
func sum(x, y float64) float64 {
	if z := x + y; !math.IsNaN(z) && !math.IsInf(z, 0) {
		return z
	}
	return x
}

// without is the state without an entry.
func without(s *selection.State, at int) *selection.State {
	less := *s
	less.Models = slices.Delete(slices.Clone(s.Models), at, at+1)
	return &less
}

// prune is the state without the entries of versions that are gone, which are its past.
func (a *App) prune(s *selection.State, now time.Time) *selection.State {
	var gone []selection.ModelState
	kept := make([]selection.ModelState, 0, len(a.models))
	for i := range s.Models {
		if a.linked(s, i) {
			kept = append(kept, s.Models[i])
		} else {
			gone = append(gone, s.Models[i])
		}
	}
	if len(gone) == 0 {
		return s
	}
	pruned := *s
	pruned.Models, pruned.Past = kept, slices.Clone(s.Past)
	for _, m := range gone {
		if a.byVersion || a.place(&pruned, m.ModelID) >= 0 { // an entry too many
			continue
		}
		taken := a.learner.AddModel(&pruned, m.ModelID)
		m.Weight = sum(m.Weight, -taken.Models[a.place(taken, m.ModelID)].Weight)
		pruned.Past = append(pruned.Past, selection.PastModel{ModelState: m, Left: now.Unix()})
	}
	pruned.Past = bounded(pruned.Past)
	return &pruned
}

// bounded is as much of a past as is kept, the latest.
func bounded(past []selection.PastModel) []selection.PastModel {
	numbers := 0
	for i, m := range slices.Backward(past) {
		if numbers += len(m.Vector); numbers > selection.MaxPastNumbers || len(past)-i > selection.MaxPast {
			return slices.Clone(past[i+1:])
		}
	}
	return past
}

// linked says whether an entry is the one of a model of the app.
func (a *App) linked(s *selection.State, at int) bool {
	id := s.Models[at].ModelID
	if a.byVersion {
		_, found := slices.BinarySearchFunc(a.models, id, func(d serving.Definition, id serving.ModelID) int { return d.Compare(id) })
		return found
	}
	_, found := slices.BinarySearchFunc(a.models, id.Model, func(m serving.Definition, name string) int {
		return cmp.Compare(m.Model, name)
	})
	return found && s.Find(id.Model) == at
}

// recovered makes an error of a policy's panic: policies do arithmetic on what they
// find, and one that fails must not take the gateway with it.
func recovered(err *error, what string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the policy could not %s: %v", what, p)
	}
}
