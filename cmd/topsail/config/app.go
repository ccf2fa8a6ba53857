package config

import (
	"time"

	"topsail/serving"
)

// appTable is one [[app]] of the file.
type appTable struct {
	Name          string             `toml:"name" help:"what stands in the path of queries"`
	Description   string             `toml:"description" help:"what people should know of it"`
	InputType     serving.InputType  `toml:"input_type" help:"bytes, ints, floats, doubles or strings"`
	DefaultOutput string             `toml:"default_output" accept:"string integer float boolean" help:"the answer when no model gave one in time"`
	SLO           time.Duration      `toml:"latency_slo_micros" default:"100000" help:"time from receiving a query to its answer, in microseconds"`
	Models        []string           `toml:"models" help:"the linked models"`
	Stages        []appStageTable    `toml:"stages" help:"instead of models: those that are asked one after another"`
	ColdStart     time.Duration      `toml:"cold_start_micros" help:"how long a query may wait for the first replica of a model at zero, in microseconds; 0 is the latency objective"`
	OutputType    serving.OutputType `toml:"output_type" help:"number, label, vector or json; what the outputs of the models are taken for"`
	Weight        float64            `toml:"weight" help:"share of the capacity against other apps when it is short; 0 is 1"`
	Example       string             `toml:"example" help:"an input as JSON, for showing people how to ask"`
	RequireKey    bool               `toml:"require_key" help:"queries must show a key that may ask this app"`
	Limit         limitTable         `toml:"limit"`
	Labels        []string           `toml:"labels" help:"words to find the app by"`
	Cache         cacheTable         `toml:"cache"`
	Policy        policyTable        `toml:"policy"`
}

// appStageTable is one [[app.stages]].
type appStageTable struct {
	Name  string   `toml:"name" help:"what after and answers call it"`
	Model string   `toml:"model" help:"the model that it asks"`
	After []string `toml:"after" help:"the stages whose outputs the model is asked about, or input for the query's input; by default the stage before it"`
}

func (t appStageTable) stage() serving.Stage {
	return serving.Stage{Name: t.Name, Model: t.Model, After: t.After}
}

type cacheTable struct {
	Off   bool          `toml:"off" help:"answer no query from the prediction cache"`
	Round float64       `toml:"round" help:"round numbers to this step when looking for a cached answer; 0 does not"`
	TTL   time.Duration `toml:"ttl_micros" help:"how long an answer may be reused, in microseconds; 0 is until it is evicted"`
}

type limitTable struct {
	PerSecond float64 `toml:"per_second" help:"queries a second at each gateway; more are refused"`
	Burst     int     `toml:"burst" help:"queries at once; 0 is a second's worth"`
}

func (t limitTable) spec() *serving.Limit {
	if t == (limitTable{}) {
		return nil
	}
	limit := serving.Limit(t)
	return &limit
}

func (t *appTable) app() *serving.App {
	var stages serving.Pipeline
	for _, s := range t.Stages {
		stages = append(stages, s.stage())
	}
	return &serving.App{
		Name:          t.Name,
		Description:   t.Description,
		InputType:     t.InputType,
		DefaultOutput: t.DefaultOutput,
		SLO:           t.SLO,
		ColdStart:     t.ColdStart,
		Models:        t.Models,
		Stages:        stages,
		OutputType:    t.OutputType,
		Policy:        serving.PolicySpec(t.Policy),
		Weight:        t.Weight,
		Cache:         serving.CacheSpec(t.Cache),
		Example:       t.Example,
		RequireKey:    t.RequireKey,
		Limit:         t.Limit.spec(),
		Labels:        t.Labels,
		Origin:        serving.FromFile,
	}
}

// apps builds and checks every app by itself.
func (l *loader) apps() []*serving.App {
	var apps []*serving.App
	seen := map[string]string{} // name -> path
	for i := range l.doc.App {
		a, path := l.doc.App[i].app(), element("app", i)
		l.checked(path, "", a.Check())
		if first, twice := seen[a.Name]; twice {
			l.wrong(path+".name", "app %q is already defined in line %d", a.Name, l.file.line(first))
		} else {
			seen[a.Name] = path
		}
		apps = append(apps, a)
	}
	return apps
}

// links checks that apps link models of the file that take what the app takes.
func (l *loader) links(c *Config) {
	current := map[string]*serving.Version{}
	versions := map[serving.ModelID]bool{}
	for _, v := range c.Versions {
		versions[v.ModelID] = true
		if c.Current[v.Model] == v.Version {
			current[v.Model] = v
		}
	}
	for i, a := range c.Apps {
		for j, name := range a.Models {
			path := element(element("app", i)+".models", j)
			v := current[name]
			switch {
			case v == nil:
				l.wrong(path, "app %q links model %q, which is not in this file%s", a.Name, name, didYouMean(name, keys(current)))
			case v.InputType != a.InputType && v.InputType != 0 && a.InputType != 0:
				l.wrong(path, "app %q takes %v, and its model %q takes %v", a.Name, a.InputType, name, v.InputType)
			}
		}
		for j, s := range a.Stages {
			if current[s.Model] == nil {
				l.wrong(element(element("app", i)+".stages", j)+".model", "app %q: stage %q asks model %q, which is not in this file%s", a.Name, s.Name, s.Model, didYouMean(s.Model, keys(current)))
			}
		}
		l.policyLinks(element("app", i), a, current, versions)
	}
}
