package clipper

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// appInfo is an app as Clipper shows it.
type appInfo struct {
	InputType    serving.InputType `json:"input_type"`
	Default      string            `json:"default_output"`
	SLOMicros    int64             `json:"latency_slo_micros"`
	Name         string            `json:"name"`
	LinkedModels []string          `json:"linked_models"`
}

func describeApp(app *serving.App) appInfo {
	return appInfo{app.InputType, app.DefaultOutput, app.SLO.Std().Microseconds(), app.Name, list(app.Models)}
}

func (a *admin) addApp(ctx context.Context, r request) (string, error) {
	input, err := serving.ParseInputType(r.text("input_type"))
	if err != nil {
		return "", refusal(err.Error())
	}
	app := serving.App{
		Name: r.text("name"), InputType: input, DefaultOutput: r.text("default_output"),
		SLO: serving.Duration(time.Duration(r.number("latency_slo_micros")) * time.Microsecond),
	}
	return "Successfully added application with name '" + app.Name + "'", a.change(ctx, func(cat *serving.Catalog) ([]catalog.Change, error) {
		if cat.Apps[app.Name] != nil {
			return nil, refused("application '%s' already exists", app.Name)
		}
		if err := app.Check(); err != nil {
			return nil, refusal(err.Error())
		}
		return one(catalog.PutApp{App: app, Create: true}), nil
	})
}

func (a *admin) deleteApp(ctx context.Context, r request) (string, error) {
	name := r.text("name")
	return "Successfully deleted application with name '" + name + "'", a.change(ctx, func(cat *serving.Catalog) ([]catalog.Change, error) {
		if cat.Apps[name] == nil {
			return nil, refused("Application '%s' does not exist", name)
		}
		return one(catalog.DeleteApp{Name: name}), nil
	})
}

func (a *admin) apps(_ context.Context, r request) (string, error) {
	apps := a.Store.Catalog().Apps
	names := slices.Sorted(maps.Keys(apps))
	if !r.flag("verbose") {
		return answer(list(names))
	}
	infos := []appInfo{}
	for _, name := range names {
		infos = append(infos, describeApp(apps[name]))
	}
	return answer(infos)
}

func (a *admin) app(_ context.Context, r request) (string, error) {
	if app := a.Store.Catalog().Apps[r.text("name")]; app != nil {
		return answer(describeApp(app))
	}
	return nothing, nil
}

// state shows what Clipper kept of an app for each user: its default output.
func (a *admin) state(_ context.Context, r request) (string, error) {
	if app := a.Store.Catalog().Apps[r.text("app_name")]; app != nil {
		return app.DefaultOutput, nil
	}
	return "", nil
}
