package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

func (a *api) listApps(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	list, err := rest.PageOf(r, v.apps(), func(app *serving.App) string { return app.Name }, v.app)
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, list)
}

func (a *api) getApp(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	app, err := v.scope.app(v.cat, r.PathValue("app"))
	if err != nil {
		return err
	}
	return v.showApp(w, r, app)
}

func (v view) showApp(w http.ResponseWriter, r *http.Request, app *serving.App) error {
	doc := v.app(app)
	return rest.Show(w, r, http.StatusOK, doc, rest.ETag(doc))
}

func (a *api) createApp(w http.ResponseWriter, r *http.Request) error {
	app, err := readApp(w, r)
	if err != nil {
		return err
	}
	return a.edit(w, r, func(v view) ([]catalog.Change, error) {
		if there := v.cat.Apps[app.Name]; there != nil && sameApp(v, there, app) {
			return nil, v.scope.changesApp(app.Name)
		}
		return v.putApp(nil, app)
	}, func(before, after view) error {
		return after.answerApp(w, r, before, app.Name)
	})
}

// answerApp answers with an app, as one that is created where it was not there before.
func (v view) answerApp(w http.ResponseWriter, r *http.Request, before view, name string) error {
	if before.cat.Apps[name] != nil {
		return v.showApp(w, r, v.cat.Apps[name])
	}
	doc := v.app(v.cat.Apps[name])
	return rest.Created(w, r, root+"/apps/"+url.PathEscape(name), doc, rest.ETag(doc))
}

func readApp(w http.ResponseWriter, r *http.Request) (*serving.App, error) {
	var doc serving.App
	if err := rest.ReadJSON(w, r, rest.MaxBody, &doc); err != nil {
		return nil, err
	}
	return taken(doc)
}

// putApp plans to put an app, in the place of before if that is not nil.
func (v view) putApp(before, app *serving.App) ([]catalog.Change, error) {
	if err := v.scope.changesApp(app.Name); err != nil {
		return nil, err
	}
	if err := v.scope.changesLinks(v.cat, before, app); err != nil {
		return nil, err
	}
	if before != nil && sameApp(v, before, app) {
		return nil, nil
	}
	if err := keepsContractOfPins(v.cat, before, app); err != nil {
		return nil, err
	}
	return []catalog.Change{catalog.PutApp{App: *app, Create: before == nil}}, checkNames(v.cat, before, app)
}

func (a *api) putApp(w http.ResponseWriter, r *http.Request) error {
	app, err := readApp(w, r)
	if err != nil {
		return err
	}
	if name := r.PathValue("app"); app.Name != name {
		return rest.Invalid("name is %q, and the path says %q", app.Name, name)
	}
	condition, err := rest.ConditionOf(r)
	if err != nil {
		return err
	}
	return a.edit(w, r, keeping(r, func(v view) ([]catalog.Change, error) {
		if err := v.scope.changesApp(app.Name); err != nil {
			return nil, err
		}
		if err := condition.Replacing(v.tagOfApp(app.Name)); err != nil {
			return nil, err
		}
		return v.putApp(v.cat.Apps[app.Name], app)
	}), func(before, after view) error {
		return after.answerApp(w, r, before, app.Name)
	})
}

// tagOfApp is the ETag of an app, or "" where it does not exist.
func (v view) tagOfApp(name string) string {
	if app := v.cat.Apps[name]; app != nil {
		return rest.ETag(v.app(app))
	}
	return ""
}

// alterApp changes an app that exists.
func (a *api) alterApp(w http.ResponseWriter, r *http.Request, plan func(view, *serving.App) ([]catalog.Change, error)) error {
	name := r.PathValue("app")
	return a.editIf(w, r, func(v view) (string, error) {
		if err := v.scope.changesApp(name); err != nil {
			return "", err
		}
		_, err := v.scope.app(v.cat, name)
		return v.tagOfApp(name), err
	}, keeping(r, func(v view) ([]catalog.Change, error) {
		return plan(v, v.cat.Apps[name])
	}), func(_, after view) error {
		if app := after.cat.Apps[name]; app != nil {
			return after.showApp(w, r, app)
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

func (a *api) patchApp(w http.ResponseWriter, r *http.Request) error {
	text, err := rest.ReadBody(w, r, rest.MaxBody, rest.MergePatchType, rest.JSONType)
	if err != nil {
		return err
	}
	patch, err := rest.ReadPatch(text, &serving.App{})
	if err != nil {
		return err
	}
	return a.alterApp(w, r, func(v view, before *serving.App) ([]catalog.Change, error) {
		var doc serving.App
		if err := patch.Apply(v.app(before), &doc); err != nil {
			return nil, err
		}
		if doc.Name != before.Name {
			return nil, rest.Invalid("name cannot be changed; create another app, and delete this one")
		}
		app, err := taken(doc)
		if err != nil {
			return nil, err
		}
		return v.putApp(before, app)
	})
}

func (a *api) deleteApp(w http.ResponseWriter, r *http.Request) error {
	return a.alterApp(w, r, func(v view, app *serving.App) ([]catalog.Change, error) {
		var users []string
		for _, other := range v.cat.Apps {
			if slices.Contains(other.AskedApps(), app.Name) {
				users = append(users, other.Name)
			}
		}
		if slices.Sort(users); len(users) > 0 {
			return nil, inUse("app %q is a stage of %s; take it out there first", app.Name, appList(users))
		}
		return []catalog.Change{catalog.DeleteApp{Name: app.Name}}, nil
	})
}

func (a *api) linkModel(w http.ResponseWriter, r *http.Request) error {
	return a.alterApp(w, r, func(v view, app *serving.App) ([]catalog.Change, error) {
		model := r.PathValue("model")
		if slices.Contains(app.Models, model) {
			return nil, nil
		}
		if _, err := v.scope.model(v.cat, model); err != nil {
			return nil, err
		}
		return []catalog.Change{catalog.Link{App: app.Name, Model: model}}, nil
	})
}

func (a *api) unlinkModel(w http.ResponseWriter, r *http.Request) error {
	return a.alterApp(w, r, func(_ view, app *serving.App) ([]catalog.Change, error) {
		return []catalog.Change{catalog.Unlink{App: app.Name, Model: r.PathValue("model")}}, nil
	})
}

// getPolicy has the app's ETag, as the policy is a part of it.
func (a *api) getPolicy(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	app, err := v.scope.app(v.cat, r.PathValue("app"))
	if err != nil {
		return err
	}
	return rest.Show(w, r, http.StatusOK, v.app(app).Policy, v.tagOfApp(app.Name))
}

func (a *api) putPolicy(w http.ResponseWriter, r *http.Request) error {
	var policy serving.PolicySpec
	if err := rest.ReadJSON(w, r, rest.MaxBody, &policy); err != nil {
		return err
	}
	policy.Kind = policy.KindName()
	return a.alterApp(w, r, func(v view, before *serving.App) ([]catalog.Change, error) {
		app := *before
		app.Policy = policy
		if err := app.Check(); err != nil {
			return nil, invalid(err)
		}
		return v.putApp(before, &app)
	})
}

// app is an app as it is shown: with the kind of its policy, also where that is the default.
func (v view) app(app *serving.App) serving.App {
	doc := *app
	doc.Models = append([]string{}, app.Models...)
	doc.Policy.Kind = app.Policy.KindName()
	return doc
}

// taken is an app that came as a document, checked. Its origin is the catalog's to give.
func taken(doc serving.App) (*serving.App, error) {
	doc.Policy.Kind, doc.Origin = doc.Policy.KindName(), ""
	return &doc, invalid(doc.Check())
}

// invalid makes what serving finds wrong with an object a problem.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return rest.Invalid("%s", oneLine(err))
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
		if s.App != "" {
			if cat.Apps[s.App] == nil {
				return fmt.Errorf("app %q: stage %q calls app %q, which does not exist", app.Name, s.Name, s.App)
			}
			continue
		}
		if cat.Models[s.Model] == nil {
			return fmt.Errorf("app %q: stage %q calls model %q, which does not exist", app.Name, s.Name, s.Model)
		}
	}
	if app.Policy.Kind != serving.PolicyCustom {
		return nil
	}
	m := cat.Models[app.Policy.Model]
	if m == nil {
		return fmt.Errorf("app %q: policy: model %q, which decides, does not exist", app.Name, app.Policy.Model)
	}
	if v := m.Versions[m.Current]; v != nil && v.InputType != serving.Strings {
		return fmt.Errorf("app %q: policy: model %q decides and must take strings, but it takes %v", app.Name, app.Policy.Model, v.InputType)
	}
	return nil
}

// checkNames refuses an app whose policy names what is not there, unless it does so already: a
// state that came about by itself must not block other changes.
func checkNames(cat *serving.Catalog, before, after *serving.App) error {
	if before != nil && misnamed(cat, before) != nil {
		return nil
	}
	return invalid(misnamed(cat, after))
}

// sameApp says whether two apps are described alike, by whichever way they were made.
func sameApp(v view, a, b *serving.App) bool {
	x, y := v.app(a), v.app(b)
	x.Origin = y.Origin
	return rest.ETag(x) == rest.ETag(y)
}
