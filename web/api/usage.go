package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/rest"
)

// Usage is what came of an app or a model version since it was registered.
type Usage struct {
	Kind        string           `json:"kind"` // "app" or "version"
	App         string           `json:"app,omitempty"`
	Model       string           `json:"model,omitempty"`
	Version     string           `json:"version,omitempty"`
	Description string           `json:"description,omitempty"`
	Policy      string           `json:"policy,omitempty"` // of an app, as are the next
	SLO         serving.Duration `json:"latency_slo_micros,omitempty"`
	Candidates  []string         `json:"candidates,omitzero"`
	Since       time.Time        `json:"since,omitzero"`
	Stages      []StageUsage     `json:"stages,omitempty"`
	Figures
}

// StageUsage is what came of the inputs of a stage.
type StageUsage struct {
	Stage string `json:"stage"`
	Model string `json:"model,omitempty"` // of an app's stage: what it asks
	App   string `json:"app,omitempty"`   // the same
	Figures
}

// Figures are the counts of usage. Times are in microseconds, from asking to the answer,
// and rounded up.
type Figures struct {
	Usage  uint64                `json:"usage"`
	Cached uint64                `json:"cached"`
	Failed uint64                `json:"failed"`
	Missed uint64                `json:"missed"`
	Total  uint64                `json:"total_micros"`
	Mean   float64               `json:"mean_micros,omitempty"`
	Min    serving.Duration      `json:"min_micros,omitempty"`
	Max    serving.Duration      `json:"max_micros,omitempty"`
	Last   *serving.UsageFailure `json:"last_failure,omitempty"`
}

// roundedUp is whole microseconds.
func roundedUp(d time.Duration) serving.Duration {
	return serving.Duration((d + time.Microsecond - 1).Truncate(time.Microsecond))
}

func figures(u serving.Usage) Figures {
	f := Figures{
		Usage: u.Answers, Cached: u.Cached, Failed: u.Failed, Missed: u.Missed, Total: u.Micros,
		Min: roundedUp(u.Least), Max: roundedUp(u.Most), Last: u.Last,
	}
	if u.Answers > 0 {
		f.Mean = float64(u.Micros) / float64(u.Answers)
	}
	return f
}

func (a *api) getAppUsage(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	app, err := v.scope.app(v.cat, r.PathValue("app"))
	if err != nil {
		return err
	}
	return a.showUsage(w, r, v, serving.UsageKey{App: app.Name})
}

func (a *api) getVersionUsage(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	version, err := v.scope.version(v.cat, versionOf(r))
	if err != nil {
		return err
	}
	return a.showUsage(w, r, v, serving.UsageKey{ModelID: version.ModelID})
}

func (a *api) showUsage(w http.ResponseWriter, r *http.Request, v view, key serving.UsageKey) error {
	all, err := a.usage(r, v, []serving.UsageKey{key})
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, all[0])
}

// listUsage is that of all apps, and then of all versions; of a model, that of its
// versions alone.
func (a *api) listUsage(w http.ResponseWriter, r *http.Request) error {
	model, err := rest.Text(r, "model", maxWho)
	if err != nil {
		return err
	}
	v := a.view(r)
	var keys []serving.UsageKey
	if model == "" {
		for _, app := range v.apps() {
			keys = append(keys, serving.UsageKey{App: app.Name})
		}
	}
	for _, m := range v.models() {
		if model != "" && m.Name != model {
			continue
		}
		for _, version := range versions(m) {
			keys = append(keys, serving.UsageKey{ModelID: version.ModelID})
		}
	}
	slices.SortFunc(keys, func(x, y serving.UsageKey) int { return strings.Compare(x.String(), y.String()) })
	some, err := rest.PageOf(r, keys, serving.UsageKey.String, func(k serving.UsageKey) serving.UsageKey { return k })
	if err != nil {
		return err
	}
	list := rest.Page[Usage]{Next: some.Next}
	if list.Items, err = a.usage(r, v, some.Items); err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, list)
}

// usage is that of objects of the catalog, as the store has it; never nil.
func (a *api) usage(r *http.Request, v view, keys []serving.UsageKey) ([]Usage, error) {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	known, err := a.Usage.UsageOf(ctx, keys)
	if err != nil {
		return nil, err
	}
	counted := make(map[serving.UsageKey][]serving.Usage, len(keys))
	for _, u := range known {
		counted[u.Key.Object()] = append(counted[u.Key.Object()], u)
	}
	docs := make([]Usage, 0, len(keys))
	for _, key := range keys {
		docs = append(docs, v.usage(key, counted[key]))
	}
	return docs, nil
}

// usage describes an object with what was counted of it: itself first, then its stages,
// or nothing.
func (v view) usage(key serving.UsageKey, counted []serving.Usage) Usage {
	doc := Usage{Kind: "version", App: key.App, Model: key.Model, Version: key.Version}
	stages := map[string]Figures{}
	for _, u := range counted {
		if u.Key.Stage == "" {
			doc.Figures, doc.Since = figures(u), u.Since
		} else {
			stages[u.Key.Stage] = figures(u)
		}
	}
	if key.App == "" {
		version := v.cat.Version(key.ModelID)
		doc.Description = version.Description
		doc.Stages = usedStages(version.Stages, counted, stages)
		return doc
	}
	app := v.cat.Apps[key.App]
	doc.Kind, doc.Description, doc.SLO = "app", app.Description, app.SLO
	if len(app.Stages) > 0 { // these say what it asks
		doc.Policy, doc.Stages = "stages", usedStages(app.Stages, nil, stages)
		return doc
	}
	doc.Policy, doc.Candidates = app.Policy.KindName(), candidates(app)
	return doc
}

// usedStages are the stages of a pipeline in its order; then those that were counted and
// that it does not name, since a version's own program may have stages, too.
func usedStages(p serving.Pipeline, counted []serving.Usage, figures map[string]Figures) (list []StageUsage) {
	named := map[string]bool{}
	for _, s := range p {
		named[s.Name] = true
		list = append(list, StageUsage{Stage: s.Name, Model: s.Model, App: s.App, Figures: figures[s.Name]})
	}
	for _, u := range counted {
		if name := u.Key.Stage; name != "" && !named[name] {
			list = append(list, StageUsage{Stage: name, Figures: figures[name]})
		}
	}
	return list
}

// candidates are what an app's policy can ask: its models, and the versions that the
// policy names; never nil.
func candidates(app *serving.App) []string {
	names := append([]string{}, app.Models...)
	for _, id := range app.Pins() {
		if name := id.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
