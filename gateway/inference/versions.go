package inference

import (
	"maps"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// Versions are the names of the versions of an app with one model, sorted; an app that asks several
// models has none.
func Versions(app *serving.App, cat *serving.Catalog) []string {
	if len(app.Models) != 1 || cat.Models[app.Models[0]] == nil {
		return []string{}
	}
	return slices.Sorted(maps.Keys(cat.Models[app.Models[0]].Versions))
}
