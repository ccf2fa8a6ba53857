package gateway

import (
	"maps"
	"slices"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// Models that no app links have an app of their name, and the catalog stays as it was.
func TestExposed(t *testing.T) {
	models := map[string]*serving.Model{}
	for _, name := range []string{"linked", "free", "taken", "v1", "api"} {
		models[name] = &serving.Model{Name: name, Current: "1", Versions: map[string]*serving.Version{
			"1": {ModelID: serving.ModelID{Model: name, Version: "1"}, InputType: serving.Floats},
		}}
	}
	models["empty"] = &serving.Model{Name: "empty"}
	cat := &serving.Catalog{Revision: 7, Models: models, Apps: map[string]*serving.App{
		"app":   {Name: "app", Models: []string{"linked"}},
		"taken": {Name: "taken", Models: []string{}, InputType: serving.Strings},
	}}
	got := exposed(cat)
	if names := slices.Sorted(maps.Keys(got.Apps)); !slices.Equal(names, []string{"app", "free", "taken"}) || got.Revision != 7 || len(cat.Apps) != 2 {
		t.Errorf("%v, %d", names, len(cat.Apps))
	}
	app := got.Apps["free"]
	if err := app.Check(); err != nil || app.InputType != serving.Floats || !app.DefaultErrors || !slices.Equal(app.Models, []string{"free"}) {
		t.Errorf("%+v, %v", app, err)
	}
	if got.Apps["taken"].InputType != serving.Strings {
		t.Error("an app was replaced")
	}
}
