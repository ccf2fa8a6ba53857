package gateway

import (
	"maps"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// exposedSLO is the objective of queries to a model that no app links.
const exposedSLO = 100 * time.Millisecond

// exposed is a catalog in which each model that no app links has an app of its name, unless there is one.
// Other catalogs are not changed.
func exposed(cat *serving.Catalog) *serving.Catalog {
	linked := map[string]bool{}
	for _, app := range cat.Apps {
		for _, model := range app.Asked() {
			linked[model] = true
		}
	}
	out := *cat
	out.Apps = maps.Clone(cat.Apps)
	if out.Apps == nil {
		out.Apps = map[string]*serving.App{}
	}
	for name, m := range cat.Models {
		v := m.Versions[m.Current]
		if v == nil || linked[name] || out.Apps[name] != nil || serving.CheckAppName(name) != nil || serving.NewlyReserved(name) {
			continue
		}
		out.Apps[name] = &serving.App{
			Name: name, InputType: v.InputType, Signature: v.Signature, DefaultOutput: "null", DefaultErrors: true,
			SLO: serving.Duration(exposedSLO), Models: []string{name},
		}
	}
	return &out
}
