package api

import (
	"encoding/json"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/auth"
)

func callerFor(apps []string) auth.Caller {
	return auth.Caller{Name: "drawn", Role: serving.RoleViewer, Apps: apps}
}

// drawChange draws a change of few apps and models; many cannot be made.
func drawChange(t *rapid.T) catalog.Change {
	app := rapid.SampledFrom([]string{"a0", "a1", "a2"}).Draw(t, "app")
	id := serving.ModelID{
		Model:   rapid.SampledFrom([]string{"m0", "m1", "m2"}).Draw(t, "model"),
		Version: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"),
	}
	switch rapid.IntRange(0, 8).Draw(t, "change") {
	case 0, 1:
		return catalog.PutApp{App: serving.App{Name: app, InputType: serving.Doubles, SLO: serving.Duration(1e7), DefaultOutput: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "default")}}
	case 2, 3:
		return catalog.PutVersion{Version: serving.Version{ModelID: id, InputType: serving.Doubles, Replicas: 1, Container: serving.Container{Command: []string{"m"}}}}
	case 4, 5:
		return catalog.Link{App: app, Model: id.Model}
	case 6:
		return catalog.Unlink{App: app, Model: id.Model}
	case 7:
		return catalog.SetCurrent{ID: id}
	}
	return catalog.DeleteApp{Name: app}
}

// follow keeps the objects that a client has up to date.
func follow(have map[string]string, e *catalogEvent) {
	put := func(name string, document any) {
		text, _ := json.Marshal(document)
		have[name] = string(text)
	}
	for _, g := range e.Gone {
		delete(have, g.Kind+" "+g.Name)
	}
	for _, app := range e.Apps {
		put("app "+app.Name, app)
	}
	for _, m := range e.Models {
		put("model "+m.Name, m)
	}
	for _, v := range e.Versions {
		put("version "+v.ModelID.String(), v)
	}
}
