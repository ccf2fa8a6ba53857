package state

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// fit brings a state in line with the app's models: a model that is missing is added,
// one in another version is moved to this one unless its version is to stay, and one
// that is no longer linked goes; it begins anew when it is linked again. (What a kind
// knows of a model is in the model's entry, so that it can go without the kind.) A
// policy that chooses between versions forgets what it knows of one that is another
// definition by now, as does every other kind of a new version, and keeps those that are not named any more, as
// long as there is room: they may come back. A state that fits is returned as it is,
// and s is never changed.
func (a *App) fit(s *selection.State, versionsStay bool) (fitted *selection.State, err error) {
	defer recovered(&err, "take in the app's models")
	for _, d := range a.models {
		switch at := a.place(s, d.ModelID); {
		case at < 0:
			s = a.learner.AddModel(s, d.ModelID)
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
	return a.prune(s), nil
}

// without is the state without an entry.
func without(s *selection.State, at int) *selection.State {
	less := *s
	less.Models = slices.Delete(slices.Clone(s.Models), at, at+1)
	return &less
}

// prune is the state without the entries of versions that are gone.
func (a *App) prune(s *selection.State) *selection.State {
	kept := make([]selection.ModelState, 0, len(a.models))
	for i := range s.Models {
		if a.linked(s, i) {
			kept = append(kept, s.Models[i])
		}
	}
	if len(kept) == len(s.Models) {
		return s
	}
	pruned := *s
	pruned.Models = kept
	return &pruned
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
