package catalog

import (
	"maps"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// OtherLength is an app whose clients are refused after a change: the version Now, which takes their queries
// then, takes inputs of another length than Was, which took them before.
type OtherLength struct {
	App      string
	Was, Now *serving.Version
}

// OtherLengths are those apps, by name. An app of another type is another contract, and is not among them.
func OtherLengths(before, after *serving.Catalog) (all []OtherLength) {
	for _, name := range slices.Sorted(maps.Keys(after.Apps)) {
		old, app := before.Apps[name], after.Apps[name]
		if old == nil || old.InputType != app.InputType {
			continue
		}
		was := ofLength(before, old)
		for _, v := range ofLength(after, app) {
			same := func(w *serving.Version) bool { return w.InputLength == v.InputLength }
			if len(was) > 0 && !slices.ContainsFunc(was, same) {
				all = append(all, OtherLength{name, was[0], v})
				break
			}
		}
	}
	return all
}

// ofLength are the versions that get an app's inputs as they are, and take them in one length only.
func ofLength(cat *serving.Catalog, app *serving.App) (found []*serving.Version) {
	models := slices.Clone(app.Models)
	for i, s := range app.Stages {
		if slices.Contains(app.Stages.Sources(i), serving.QueryInput) {
			models = append(models, s.Model) // of another app, its own change says so
		}
	}
	var ids []serving.ModelID
	for _, name := range models {
		if m := cat.Models[name]; m != nil {
			ids = append(ids, serving.ModelID{Model: name, Version: m.Current})
		}
	}
	for _, id := range append(ids, app.Pins()...) {
		if v := cat.Version(id); v != nil && v.InputLength > 0 && v.InputType == app.InputType {
			found = append(found, v)
		}
	}
	return found
}
