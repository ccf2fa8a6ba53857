package api

import (
	"encoding/json"
	"maps"
	"strings"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

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

// follow reads again what an event names.
func follow(have map[string]string, v view, named []object) {
	put := func(name string, document any) {
		text, _ := json.Marshal(document)
		have[name] = string(text)
	}
	for _, one := range named {
		delete(have, one.Kind+" "+one.Name)
		switch one.Kind {
		case "app":
			if app := v.cat.Apps[one.Name]; app != nil {
				put("app "+app.Name, v.app(app))
			}
		case "model":
			maps.DeleteFunc(have, func(name, _ string) bool { return strings.HasPrefix(name, "version "+one.Name+":") })
			if m := v.cat.Models[one.Name]; m != nil {
				put("model "+m.Name, v.model(m))
				for _, version := range versions(m) {
					put("version "+version.ModelID.String(), v.version(version))
				}
			}
		}
	}
}
