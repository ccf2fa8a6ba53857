package catalog_test

import (
	"encoding/json"
	"time"

	"pgregory.net/rapid"

	"topsail/serving"
	"topsail/serving/catalog"
)

func app(name string, models ...string) serving.App {
	return serving.App{Name: name, InputType: serving.Doubles, SLO: time.Second, Models: models}
}

func version(model, name string) serving.Version {
	return serving.Version{ModelID: id(model, name), InputType: serving.Doubles}
}

func id(model, version string) serving.ModelID {
	return serving.ModelID{Model: model, Version: version}
}

// encode is all of a catalog or object, to compare it.
func encode(t rapid.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Few names, so that changes meet.
var (
	appNames     = rapid.SampledFrom([]string{"a", "b", "c"})
	modelNames   = rapid.SampledFrom([]string{"m", "n"})
	versionNames = rapid.SampledFrom([]string{"1", "2", "3"})
	policies     = []serving.PolicySpec{
		{},
		{Kind: serving.PolicyExp3, Models: []string{"n", "m"}, Gamma: 0.1, Costs: map[string]float64{"m": 0.3}},
		{Kind: serving.PolicyMean, Models: []string{}, Weights: map[string]float64{"m": 1, "n:1": 2}},                            // not for labels
		{Kind: serving.PolicyVersions, Canary: "2", Share: 0.1},                                                                  // not for two models
		{Kind: serving.PolicyCustom, Model: "n", Fallback: &serving.PolicySpec{Kind: serving.PolicyVote, Models: []string{"m"}}}, // not where n is linked
	}
	inputTypes = rapid.SampledFrom([]serving.InputType{serving.Doubles, serving.Doubles, serving.Doubles, serving.Floats})
)

func drawApp(t *rapid.T) serving.App {
	a := app(appNames.Draw(t, "app"), rapid.SliceOfN(modelNames, 0, 2).Draw(t, "links")...)
	a.InputType = inputTypes.Draw(t, "input type")
	a.SLO = rapid.SampledFrom([]time.Duration{time.Second, time.Second, time.Second, time.Minute, time.Minute, 0}).Draw(t, "slo")
	a.OutputType = rapid.SampledFrom([]serving.OutputType{"", "", "label"}).Draw(t, "output type")
	a.Policy = rapid.SampledFrom(policies).Draw(t, "policy")
	a.DefaultOutput = rapid.SampledFrom([]string{"", "x", "not UTF-8: \xff"}).Draw(t, "default")
	return a
}

func drawVersion(t *rapid.T) serving.Version {
	v := version(modelNames.Draw(t, "model"), versionNames.Draw(t, "version"))
	v.InputType = inputTypes.Draw(t, "input type")
	v.Labels = rapid.SampledFrom([][]string{nil, {}, {"x"}}).Draw(t, "labels")
	return v
}

func drawID(t *rapid.T) serving.ModelID {
	return id(modelNames.Draw(t, "model"), versionNames.Draw(t, "version"))
}

func drawChange(t *rapid.T) catalog.Change {
	switch rapid.IntRange(0, 6).Draw(t, "change") {
	case 0:
		return catalog.PutApp{App: drawApp(t), Create: rapid.Bool().Draw(t, "create")}
	case 1:
		return catalog.DeleteApp{Name: appNames.Draw(t, "app")}
	case 2:
		return catalog.PutVersion{Version: drawVersion(t), KeepCurrent: rapid.Bool().Draw(t, "keep")}
	case 3:
		return catalog.DeleteVersion{ID: drawID(t)}
	case 4:
		return catalog.Link{App: appNames.Draw(t, "app"), Model: modelNames.Draw(t, "model")}
	case 5:
		return catalog.Unlink{App: appNames.Draw(t, "app"), Model: modelNames.Draw(t, "model")}
	}
	return catalog.SetCurrent{ID: drawID(t)}
}

// file is what a configuration file gives to Merge.
type file struct {
	apps     []serving.App
	versions []serving.Version
	current  map[string]string
}

func (f file) merge(cat *serving.Catalog) (*serving.Catalog, catalog.Report, error) {
	return catalog.Merge(cat, f.apps, f.versions, f.current)
}

func drawFile(t *rapid.T) file {
	return file{
		apps:     rapid.SliceOfNDistinct(rapid.Custom(drawApp), 0, 2, func(a serving.App) string { return a.Name }).Draw(t, "apps"),
		versions: rapid.SliceOfNDistinct(rapid.Custom(drawVersion), 0, 4, func(v serving.Version) serving.ModelID { return v.ModelID }).Draw(t, "versions"),
		current:  rapid.MapOfN(modelNames, versionNames, 0, 1).Draw(t, "current"),
	}
}

// drawCatalog draws a catalog that the API and the file have changed in turns.
func drawCatalog(t *rapid.T) *serving.Catalog {
	cat := &serving.Catalog{}
	for range rapid.IntRange(0, 20).Draw(t, "steps") {
		if next, err := drawStep(t, cat); err == nil {
			cat = next
		}
	}
	return cat
}

func drawStep(t *rapid.T, cat *serving.Catalog) (*serving.Catalog, error) {
	if rapid.IntRange(0, 9).Draw(t, "step") == 0 {
		next, _, err := drawFile(t).merge(cat)
		return next, err
	}
	return catalog.Apply(cat, drawChange(t), 0)
}
