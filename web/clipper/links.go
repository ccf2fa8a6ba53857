package clipper

import (
	"context"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// addLinks takes several models at once, unlike Clipper, whose apps have one.
func (a *admin) addLinks(ctx context.Context, r request) (string, error) {
	app, models := r.text("app_name"), r.texts("model_names")
	done := "Successfully linked model with name '" + strings.Join(models, "', '") + "' to application '" + app + "'"
	return done, a.change(ctx, func(cat *serving.Catalog) ([]catalog.Change, error) {
		if err := checkLinks(cat, app, models); err != nil {
			return nil, err
		}
		return changes(models, func(model string) catalog.Change { return catalog.Link{App: app, Model: model} }), nil
	})
}

func checkLinks(cat *serving.Catalog, name string, models []string) error {
	app := cat.Apps[name]
	if app == nil {
		return refused("No app with name '%s' exists.", name)
	}
	for _, model := range models {
		m := cat.Models[model]
		if m == nil {
			return refused("No model with name '%s' exists.", model)
		}
		if v := m.Versions[m.Current]; v != nil && v.InputType != app.InputType {
			return refused("Model with name '%s' has incompatible input_type '%v'. Requested app to link to has input_type '%v'.",
				model, v.InputType, app.InputType)
		}
	}
	if len(models) == 0 {
		return refused("Please provide the name of the model that you want to link to the application '%s'", name)
	}
	for i, model := range models {
		if slices.Contains(app.Models, model) || slices.Contains(models[:i], model) {
			return refused("The model with name '%s' is already linked to '%s'", model, name)
		}
	}
	return nil
}

func (a *admin) deleteLinks(ctx context.Context, r request) (string, error) {
	name, models := r.text("app_name"), r.texts("model_names")
	slices.Sort(models)
	models = slices.Compact(models)
	return "Success!", a.change(ctx, func(cat *serving.Catalog) ([]catalog.Change, error) {
		app := cat.Apps[name]
		if app == nil {
			return nil, refused("No app with name %s exists.", name)
		}
		for _, model := range models {
			if !slices.Contains(app.Models, model) {
				return nil, refused("Cannot remove nonexistent link between app %s and model %s", name, model)
			}
		}
		return changes(models, func(model string) catalog.Change { return catalog.Unlink{App: name, Model: model} }), nil
	})
}

func (a *admin) linkedModels(_ context.Context, r request) (string, error) {
	name := r.text("app_name")
	app := a.Store.Catalog().Apps[name]
	if app == nil {
		return "", refused("No application with name '%s' exists.", name)
	}
	return answer(list(app.Models))
}

// changes makes one change for each model.
func changes(models []string, change func(model string) catalog.Change) []catalog.Change {
	var list []catalog.Change
	for _, model := range models {
		list = append(list, change(model))
	}
	return list
}
