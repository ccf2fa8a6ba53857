package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/rest"
)

// Insight is how an app does and why: its traffic, what its policy has learned, and each model that it may ask. What is
// not known is left out.
type Insight struct {
	App       string             `json:"app"`
	Policy    string             `json:"policy"`
	At        time.Time          `json:"at"`
	Traffic   *AppTraffic        `json:"traffic,omitempty"` // in the last minute
	Learned   *Learned           `json:"learned,omitempty"` // of a policy that learns
	Models    []ModelInsight     `json:"models"`            // as the app names them; then those of which only something was learned
	Decisions []serving.Decision `json:"decisions"`         // of the scheduler about these models, the newest first
}

// Learned is what a policy has learned for a user in a context, of all models together.
type Learned struct {
	User    string  `json:"uid,omitempty"`
	Context string  `json:"context,omitempty"`
	Steps   float64 `json:"steps"`
	Loss    float64 `json:"loss"`
	Regret  float64 `json:"regret"`
	Note    string  `json:"note,omitempty"`
}

// ModelInsight is a model version as it does for an app.
type ModelInsight struct {
	Model    string         `json:"model"`
	Version  string         `json:"version"`
	Current  bool           `json:"current"`
	Chosen   *float64       `json:"chosen,omitempty"`   // share of the app's queries of the last minute for which it was asked
	Answered *float64       `json:"answered,omitempty"` // of these, share that it answered in time
	Agreed   *float64       `json:"agreed,omitempty"`   // of these, share that it answered as the app did
	Learned  *ModelLearned  `json:"learned,omitempty"`
	Latency  int64          `json:"latency_micros,omitempty"` // mean of its ready replicas
	Replicas map[string]int `json:"replicas"`                 // by their states
	Usage    *Figures       `json:"usage,omitempty"`          // since it was registered, for all apps
}

// ModelLearned is what a policy has learned of a model.
type ModelLearned struct {
	Share  float64 `json:"share"`
	Worth  float64 `json:"worth"`
	Judged float64 `json:"judged"`
	Loss   float64 `json:"loss"`
}

const (
	// maxWho bounds the names of users and contexts, in bytes.
	maxWho = 256
	// insightDecisions is how many decisions an insight has at most.
	insightDecisions = 20
)

func (l *live) getInsight(w http.ResponseWriter, r *http.Request) error {
	v := l.view(r)
	app, user, about, err := v.learner(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	learning, err := l.Learning.Learned(ctx, app.Name, user, about)
	if err != nil {
		return err
	}
	decisions, err := l.Scheduler.Decisions(ctx, maxDecisions, serving.ModelID{})
	if err != nil {
		return err
	}
	doc := Insight{App: app.Name, Policy: app.Policy.KindName(), At: l.Now().UTC()}
	doc.addModels(v.cat, app, learning.Models)
	if app.Policy.Learns() {
		doc.Learned = &Learned{user, about, learning.Steps, learning.Loss, learning.Regret, learning.Note}
	}
	if len(app.Stages) > 0 {
		doc.Policy = "stages"
	}
	doc.addTraffic(v.traffic(l.Traffic.Now()).Apps, l.Traffic.Chosen(app.Name))
	doc.addReplicas(l.Replicas.Replicas())
	doc.addDecisions(decisions)
	if err := l.addUsage(r, v, &doc); err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, doc)
}

// addModels adds the versions that an app may ask: those that its models serve, those that its policy names, and those of
// which only something was learned.
func (doc *Insight) addModels(cat *serving.Catalog, app *serving.App, learned []serving.ModelLearning) {
	doc.Models = []ModelInsight{}
	add := func(id serving.ModelID) *ModelInsight {
		if m := doc.model(id); m != nil {
			return m
		}
		m := cat.Models[id.Model]
		doc.Models = append(doc.Models, ModelInsight{Model: id.Model, Version: id.Version, Current: m != nil && m.Current == id.Version, Replicas: map[string]int{}})
		return &doc.Models[len(doc.Models)-1]
	}
	for _, name := range app.Asked() {
		if m := cat.Models[name]; m != nil && m.Current != "" {
			add(serving.ModelID{Model: name, Version: m.Current})
		}
	}
	for _, id := range app.Pins() {
		add(id)
	}
	for _, one := range learned {
		add(one.ModelID).Learned = &ModelLearned{one.Share, one.Worth, one.Judged, one.Loss}
	}
}

func (m *ModelInsight) id() serving.ModelID {
	return serving.ModelID{Model: m.Model, Version: m.Version}
}

// model is a version among the models, or nil.
func (doc *Insight) model(id serving.ModelID) *ModelInsight {
	for i := range doc.Models {
		if doc.Models[i].id() == id {
			return &doc.Models[i]
		}
	}
	return nil
}

func (doc *Insight) addTraffic(apps []AppTraffic, chosen []ModelTraffic) {
	for _, t := range apps {
		if t.App == doc.App {
			doc.Traffic = &t
		}
	}
	for _, t := range chosen {
		if m := doc.model(t.ModelID); m != nil {
			m.Chosen, m.Answered, m.Agreed = &t.Chosen, &t.Answered, &t.Agreed
		}
	}
}

func (doc *Insight) addReplicas(all []Replica) {
	for _, r := range all {
		m := doc.model(serving.ModelID{Model: r.Model, Version: r.Version})
		if m == nil {
			continue
		}
		m.Replicas[r.State]++
		if r.State == "ready" {
			m.Latency += (r.Latency - m.Latency) / int64(m.Replicas["ready"])
		}
	}
}

func (doc *Insight) addDecisions(all []serving.Decision) {
	doc.Decisions = []serving.Decision{}
	for _, d := range all {
		if len(doc.Decisions) < insightDecisions && doc.model(d.ModelID) != nil {
			doc.Decisions = append(doc.Decisions, d)
		}
	}
}

// addUsage adds what versions did that are registered.
func (l *live) addUsage(r *http.Request, v view, doc *Insight) error {
	var keys []serving.UsageKey
	for i := range doc.Models {
		if id := doc.Models[i].id(); v.cat.Version(id) != nil {
			keys = append(keys, serving.UsageKey{ModelID: id})
		}
	}
	all, err := l.usage(r, v, keys)
	for i := range all {
		doc.model(serving.ModelID{Model: all[i].Model, Version: all[i].Version}).Usage = &all[i].Figures
	}
	return err
}

// learner finds the app, and the user and context, that a request is about.
func (v view) learner(r *http.Request) (app *serving.App, user, about string, err error) {
	if user, err = rest.Text(r, "uid", maxWho); err != nil {
		return nil, "", "", err
	}
	if about, err = rest.Text(r, "context", maxWho); err != nil {
		return nil, "", "", err
	}
	app, err = v.scope.app(v.cat, r.PathValue("app"))
	return app, user, about, err
}

func (a *api) forgetLearned(w http.ResponseWriter, r *http.Request) error {
	app, user, about, err := a.view(r).learner(r)
	if err != nil {
		return err
	}
	if err := scopeOf(r).changesApp(app.Name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	before, err := a.Learning.Learned(ctx, app.Name, user, about)
	if err != nil {
		return err
	}
	text, err := json.Marshal(before)
	if err != nil {
		return err
	}
	if err := a.Learning.Forget(ctx, app.Name, user, about); err != nil {
		return err
	}
	if err := a.note(r, "forget", "learned", app.Name, text, nil); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
