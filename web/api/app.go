package api

import (
	"encoding/json"
	"fmt"

	"topsail/serving"
)

// App is an app as the API shows and takes it.
type App struct {
	Name          string             `json:"name" required:"yes"`
	Description   string             `json:"description,omitempty"`
	InputType     serving.InputType  `json:"input_type" required:"yes"`
	DefaultOutput string             `json:"default_output"`
	SLO           micros             `json:"latency_slo_micros" required:"yes"`
	ColdStart     micros             `json:"cold_start_micros,omitempty"`
	Models        []string           `json:"models,omitzero"`
	Stages        []AppStage         `json:"stages,omitempty"`
	OutputType    serving.OutputType `json:"output_type,omitempty"`
	Policy        json.RawMessage    `json:"policy,omitempty"`
	Weight        float64            `json:"weight,omitempty"`
	Cache         *Cache             `json:"cache,omitempty"`
	Example       string             `json:"example,omitempty"`
	RequireKey    bool               `json:"require_key,omitempty"`
	Limit         *serving.Limit     `json:"limit,omitempty"`
	Labels        []string           `json:"labels,omitempty"`
	Origin        serving.Origin     `json:"origin,omitempty"` // not taken
}

// AppStage is one of the models that an app asks one after another.
type AppStage struct {
	Name  string   `json:"name" required:"yes"`
	Model string   `json:"model" required:"yes"`
	After []string `json:"after,omitempty"`
}

// Cache is how an app uses the prediction cache.
type Cache struct {
	Off   bool    `json:"off,omitempty"`
	Round float64 `json:"round,omitempty"`
	TTL   micros  `json:"ttl_micros,omitempty"`
}

// app describes an app.
func (v view) app(app *serving.App) App {
	doc := App{
		Name: app.Name, Description: app.Description, InputType: app.InputType, DefaultOutput: app.DefaultOutput,
		SLO: microsOf(app.SLO), ColdStart: microsOf(app.ColdStart),
		Models: append([]string{}, app.Models...), OutputType: app.OutputType, Policy: policyText(app.Policy), Weight: app.Weight,
		Example: app.Example, RequireKey: app.RequireKey, Limit: app.Limit, Labels: app.Labels, Origin: app.Origin,
	}
	for _, s := range app.Stages {
		doc.Stages = append(doc.Stages, AppStage{s.Name, s.Model, s.After})
	}
	if c := app.Cache; c != (serving.CacheSpec{}) {
		doc.Cache = &Cache{c.Off, c.Round, microsOf(c.TTL)}
	}
	return doc
}

// policyText is a policy with its kind, also where that is the default.
func policyText(p serving.PolicySpec) json.RawMessage {
	p.Kind = p.KindName()
	text, _ := json.Marshal(p) // its numbers are finite, as serving checks
	return text
}

// read is the app that the document describes.
func (doc App) read() (*serving.App, error) {
	var times durations
	app := &serving.App{
		Name: doc.Name, Description: doc.Description, InputType: doc.InputType, DefaultOutput: doc.DefaultOutput,
		SLO:       times.read(doc.SLO, "latency_slo_micros"),
		ColdStart: times.read(doc.ColdStart, "cold_start_micros"),
		Models:    doc.Models, OutputType: doc.OutputType, Weight: doc.Weight,
		Example: doc.Example, RequireKey: doc.RequireKey, Limit: doc.Limit, Labels: doc.Labels,
	}
	for _, s := range doc.Stages {
		app.Stages = append(app.Stages, serving.Stage{Name: s.Name, Model: s.Model, After: s.After})
	}
	if c := doc.Cache; c != nil {
		app.Cache = serving.CacheSpec{Off: c.Off, Round: c.Round, TTL: times.read(c.TTL, "cache.ttl_micros")}
	}
	if times.err != nil {
		return nil, times.err
	}
	var err error
	if app.Policy, err = readPolicy(doc.Policy); err != nil {
		return nil, err
	}
	return app, check(app.Check())
}

// readPolicy reads a policy. Without a kind it is the default one, by its name.
func readPolicy(text json.RawMessage) (serving.PolicySpec, error) {
	if len(text) == 0 {
		text = []byte("{}")
	}
	p, err := serving.ParsePolicy(text)
	p.Kind = p.KindName()
	return p, check(err)
}

// check makes what serving finds wrong with an object a problem.
func check(err error) error {
	if err == nil {
		return nil
	}
	return invalid("%s", oneLine(err))
}

// misnamed says which models and versions the policy of an app names that are not
// there, or nil. A catalog may have such: links and versions come and go.
func misnamed(cat *serving.Catalog, app *serving.App) error {
	if err := app.CheckLinks(); err != nil {
		return err
	}
	if err := app.CheckVersions(func(id serving.ModelID) bool { return cat.Version(id) != nil }); err != nil {
		return err
	}
	for _, s := range app.Stages {
		if cat.Models[s.Model] == nil {
			return fmt.Errorf("app %q: stage %q is to ask model %q, which does not exist", app.Name, s.Name, s.Model)
		}
	}
	if app.Policy.Kind != serving.PolicyCustom {
		return nil
	}
	m := cat.Models[app.Policy.Model]
	if m == nil {
		return fmt.Errorf("app %q: policy: model %q is to decide, and does not exist", app.Name, app.Policy.Model)
	}
	if v := m.Versions[m.Current]; v != nil && v.InputType != serving.Strings {
		return fmt.Errorf("app %q: policy: model %q decides and must take strings, and it takes %v", app.Name, app.Policy.Model, v.InputType)
	}
	return nil
}

// checkNames refuses an app whose policy names what is not there, unless it does so
// already: what came about by itself must not keep people from changing other things.
func checkNames(cat *serving.Catalog, before, after *serving.App) error {
	if before != nil && misnamed(cat, before) != nil {
		return nil
	}
	return check(misnamed(cat, after))
}

// sameApp says whether two apps are described alike, whoever made them.
func sameApp(v view, a, b *serving.App) bool {
	x, y := v.app(a), v.app(b)
	x.Origin = y.Origin
	return etagOf(x) == etagOf(y)
}
