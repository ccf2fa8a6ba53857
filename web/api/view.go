package api

import (
	"maps"
	"net/http"
	"slices"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
)

// view shows the objects of a catalog as one caller may see them.
type view struct {
	cat    *serving.Catalog
	caller auth.Caller
	scope  scope
	asking map[string][]string // apps by the models that they ask, sorted
}

// view is what the caller sees of the catalog as it is.
func (a *api) view(r *http.Request) view { return viewOf(auth.Of(r.Context()), a.Store.Catalog()) }

func viewOf(caller auth.Caller, cat *serving.Catalog) view {
	v := view{cat: cat, caller: caller, scope: scope{caller.Apps}, asking: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(cat.Apps)) {
		for _, model := range cat.Apps[name].Asked() {
			v.asking[model] = append(v.asking[model], name)
		}
	}
	return v
}

// of is what the same caller sees of another catalog.
func (v view) of(cat *serving.Catalog) view { return viewOf(v.caller, cat) }

// open says that nothing is hidden from the caller.
func (v view) open() bool { return v.caller.Role.Covers(serving.RoleDeployer) }

// apps lists the apps that the caller sees, by name.
func (v view) apps() []*serving.App {
	var list []*serving.App
	for _, name := range slices.Sorted(maps.Keys(v.cat.Apps)) {
		if v.scope.seesApp(name) {
			list = append(list, v.cat.Apps[name])
		}
	}
	return list
}

// models lists the models that the caller sees, by name.
func (v view) models() []*serving.Model {
	var list []*serving.Model
	for _, name := range slices.Sorted(maps.Keys(v.cat.Models)) {
		if v.seesModel(name) {
			list = append(list, v.cat.Models[name])
		}
	}
	return list
}

func (v view) seesModel(name string) bool { return v.scope.sees(v.cat, name, v.asking[name]) }

// appsAsking are the apps that ask a model, of those that the caller sees; never nil.
func (v view) appsAsking(model string) []string {
	names := []string{}
	for _, name := range v.asking[model] {
		if v.scope.seesApp(name) {
			names = append(names, name)
		}
	}
	return names
}

// versions lists the versions of a model by name.
func versions(m *serving.Model) []*serving.Version {
	list := make([]*serving.Version, 0, len(m.Versions))
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		list = append(list, m.Versions[name])
	}
	return list
}

// asking lists the apps that ask a model, by name.
func asking(cat *serving.Catalog, model string) []string {
	var names []string
	for name, app := range cat.Apps {
		if slices.Contains(app.Asked(), model) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
