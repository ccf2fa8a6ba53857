package serving

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Names are the models that the policy and its fallback name, each once, sorted;
// "model:version" where a version is pinned. Weights of versions are none of them.
func (p *PolicySpec) Names() []string {
	var names []string
	for _, name := range p.named() {
		names = append(names, name)
	}
	if p.Fallback != nil {
		names = append(names, p.Fallback.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// named yields the models that the policy itself names, after the options that name
// them.
func (p *PolicySpec) named() iter.Seq2[string, string] {
	return func(yield func(option, name string) bool) {
		if p.Model != "" && !yield("model", p.Model) {
			return
		}
		for _, name := range p.Models {
			if !yield("models", name) {
				return
			}
		}
		for _, name := range p.Order {
			if !yield("order", name) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(p.Costs)) {
			if !yield("costs", name) {
				return
			}
		}
		if p.Kind == PolicyVersions {
			return // its weights are those of versions
		}
		for _, name := range slices.Sorted(maps.Keys(p.Weights)) {
			if !yield("weights", name) {
				return
			}
		}
	}
}

// CheckLinks says which models the policy names that the app does not link, or nil. Links come and
// go, and a model that is not linked is not asked: only a request that gives both at once is
// refused.
func (a *App) CheckLinks() error {
	return a.eachPolicy(func(p *PolicySpec, wrong func(format string, args ...any)) {
		for option, name := range p.named() {
			model, _, _ := strings.Cut(name, ":")
			decides := p.Kind == PolicyCustom && option == "model"
			if !decides && !slices.Contains(a.Models, model) {
				wrong("%s names model %q, and the app does not link it: link it or leave it out", option, model)
			}
		}
	})
}

// CheckVersions says which versions of linked models the policy names that do not
// exist, or nil. They may come and go as links do.
func (a *App) CheckVersions(exists func(ModelID) bool) error {
	return a.eachPolicy(func(p *PolicySpec, wrong func(format string, args ...any)) {
		for option, id := range a.versions(p) {
			if !exists(id) {
				wrong("%s names version %q of model %q, which does not exist", option, id.Version, id.Model)
			}
		}
	})
}

// versions yields the versions of linked models that p names, after the options that
// name them.
func (a *App) versions(p *PolicySpec) iter.Seq2[string, ModelID] {
	return func(yield func(option string, id ModelID) bool) {
		for option, name := range p.named() {
			model, version, pinned := strings.Cut(name, ":")
			if pinned && slices.Contains(a.Models, model) && !yield(option, ModelID{model, version}) {
				return
			}
		}
		if p.Kind != PolicyVersions || len(a.Models) != 1 {
			return
		}
		for _, version := range slices.Sorted(maps.Keys(p.Weights)) {
			if !yield("weights", ModelID{a.Models[0], version}) {
				return
			}
		}
		if p.Canary != "" {
			yield("canary", ModelID{a.Models[0], p.Canary})
		}
	}
}

// Pins are the versions of linked models that the app's policy names: they take queries
// whether they are current or not.
func (a *App) Pins() (ids []ModelID) {
	for p := &a.Policy; p != nil; p = p.Fallback {
		for _, id := range a.versions(p) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Asked are the models that take the app's queries: those that it links, the one that
// decides which models to ask, and those of its stages, each once.
func (a *App) Asked() []string {
	if a.Policy.Kind != PolicyCustom && len(a.Stages) == 0 {
		return a.Models
	}
	asked := slices.Clone(a.Models)
	if a.Policy.Kind == PolicyCustom {
		asked = append(asked, a.Policy.Model)
	}
	for _, s := range a.Stages {
		if s.Model != "" && !slices.Contains(asked, s.Model) {
			asked = append(asked, s.Model)
		}
	}
	return asked
}

// AskedApps are the apps that its stages ask, each once.
func (a *App) AskedApps() (names []string) {
	for _, s := range a.Stages {
		if s.App != "" && !slices.Contains(names, s.App) {
			names = append(names, s.App)
		}
	}
	return names
}

// eachPolicy joins what check finds wrong with the app's policy and its fallback.
func (a *App) eachPolicy(check func(p *PolicySpec, wrong func(format string, args ...any))) error {
	var errs []error
	about := fmt.Sprintf("app %q: policy: ", a.Name)
	for p := &a.Policy; p != nil; p = p.Fallback {
		check(p, func(format string, args ...any) { errs = append(errs, errors.New(about+fmt.Sprintf(format, args...))) })
		about += "fallback: "
	}
	return errors.Join(errs...)
}
