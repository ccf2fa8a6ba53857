package api

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/problem"
	"github.com/topsail-serving/topsail/web/rest"
)

func (a *api) listModels(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	list, err := rest.PageOf(r, v.models(), func(m *serving.Model) string { return m.Name }, v.model)
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, list)
}

func (a *api) getModel(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	m, err := v.scope.model(v.cat, r.PathValue("model"))
	if err != nil {
		return err
	}
	return v.showModel(w, r, m)
}

func (v view) showModel(w http.ResponseWriter, r *http.Request, m *serving.Model) error {
	doc := v.model(m)
	return rest.Show(w, r, http.StatusOK, doc, rest.ETag(doc))
}

// alterModel changes a model that exists.
func (a *api) alterModel(w http.ResponseWriter, r *http.Request, plan func(view, *serving.Model) ([]catalog.Change, error)) error {
	name := r.PathValue("model")
	return a.editIf(w, r, func(v view) (string, error) {
		m, err := v.scope.model(v.cat, name)
		if err != nil {
			return "", err
		}
		return rest.ETag(v.model(m)), v.scope.changesModel(v.cat, name)
	}, func(v view) ([]catalog.Change, error) {
		return plan(v, v.cat.Models[name])
	}, func(_, after view) error {
		if m := after.cat.Models[name]; m != nil {
			return after.showModel(w, r, m)
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

func (a *api) deleteModel(w http.ResponseWriter, r *http.Request) error {
	return a.alterModel(w, r, func(v view, m *serving.Model) ([]catalog.Change, error) {
		if apps := asking(v.cat, m.Name); len(apps) > 0 {
			return nil, inUse("model %q is linked by %s; unlink it first", m.Name, appList(apps))
		}
		return []catalog.Change{catalog.DeleteModel{Name: m.Name}}, nil
	})
}

// versionName is a body that names a version.
type versionName struct {
	Version string `json:"version" required:"yes"`
}

func (a *api) setCurrent(w http.ResponseWriter, r *http.Request) error {
	var body versionName
	if err := rest.ReadJSON(w, r, rest.MaxBody, &body); err != nil {
		return err
	}
	return a.alterModel(w, r, func(v view, m *serving.Model) ([]catalog.Change, error) {
		changes, err := makeCurrent(m, body.Version)
		if err != nil {
			return nil, err
		}
		return changes, keepsContract(r, v.cat, changes)
	})
}

func (a *api) rollBack(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Version string `json:"version"`
	}
	if r.ContentLength != 0 {
		if err := rest.ReadJSON(w, r, rest.MaxBody, &body); err != nil {
			return err
		}
	}
	return a.alterModel(w, r, func(_ view, m *serving.Model) ([]catalog.Change, error) {
		version := cmp.Or(body.Version, m.Previous)
		if version == "" {
			return nil, problem.New(http.StatusConflict, "no_previous",
				fmt.Sprintf("no version of model %q was current before, or it was deleted; name the version to go back to", m.Name))
		}
		return makeCurrent(m, version)
	})
}

// makeCurrent plans to make a registered version the current one.
func makeCurrent(m *serving.Model, version string) ([]catalog.Change, error) {
	if v := m.Versions[version]; v != nil && v.Prepared {
		return nil, problem.New(http.StatusConflict, "prepared",
			fmt.Sprintf("version %q of model %q is prepared for Clipper's add_model, which registers it and makes it current", version, m.Name))
	}
	return []catalog.Change{catalog.SetCurrent{ID: serving.ModelID{Model: m.Name, Version: version}}}, nil
}

// appList is apps in the words of an error.
func appList(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("app %q", names[0])
	}
	const most = 5
	rest := ""
	if len(names) > most {
		rest = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return fmt.Sprintf(`apps "%s"`, strings.Join(names, `", "`)) + rest
}

// Model is a model as the API shows it.
type Model struct {
	Name      string            `json:"name"`
	Current   string            `json:"current"`
	Serving   string            `json:"serving"`
	Previous  string            `json:"previous,omitempty"`
	InputType serving.InputType `json:"input_type,omitzero"`
	Versions  []string          `json:"versions"`
	Apps      []string          `json:"apps"`
}

// model describes a model.
func (v view) model(m *serving.Model) Model {
	doc := Model{Name: m.Name, Current: m.Current, Serving: m.Serving, Previous: m.Previous, Versions: []string{}, Apps: v.appsAsking(m.Name)}
	for _, version := range versions(m) {
		doc.Versions = append(doc.Versions, version.Version)
	}
	if shown := m.Versions[cmp.Or(m.Current, m.Serving, doc.Versions[len(doc.Versions)-1])]; shown != nil {
		doc.InputType = shown.InputType
	}
	return doc
}
