package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/problem"
)

// admit says why a caller may not do what needs a role, or nil. Which role a request needs is in the table of routes
// (routes.go), and for Clipper's requests in package clipper.
func admit(caller auth.Caller, needed serving.Role) error {
	switch {
	case needed == public || caller.Role.Covers(needed):
		return nil
	case caller.Role == "":
		return auth.Unauthorized()
	}
	return problem.New(http.StatusForbidden, "forbidden",
		fmt.Sprintf("this needs the role %s, and the key %q has the role %s; use another key", needed, caller.Name, caller.Role))
}

// scope is what a caller's key is for: a key for some apps sees those, the models that
// they ask and those that no app asks. It changes those apps, and the models that no
// other app asks.
type scope struct{ apps []string } // none: everything

func scopeOf(r *http.Request) scope { return scope{auth.Of(r.Context()).Apps} }

// whole refuses keys for some apps what is about everything.
func (s scope) whole() error {
	if len(s.apps) == 0 {
		return nil
	}
	return s.refuse("this is about everything")
}

func (s scope) seesApp(name string) bool { return len(s.apps) == 0 || slices.Contains(s.apps, name) }

func (s scope) seesModel(cat *serving.Catalog, name string) bool {
	return s.sees(cat, name, asking(cat, name))
}

// sees says whether the caller sees a model that these apps ask. Of one that no longer exists, the
// owner is unknown.
func (s scope) sees(cat *serving.Catalog, model string, apps []string) bool {
	switch {
	case len(s.apps) == 0:
		return true
	case len(apps) == 0:
		return cat.Models[model] != nil
	}
	return slices.ContainsFunc(apps, s.seesApp)
}

// app finds an app that the caller sees.
func (s scope) app(cat *serving.Catalog, name string) (*serving.App, error) {
	if app := cat.Apps[name]; app != nil && s.seesApp(name) {
		return app, nil
	}
	return nil, fmt.Errorf("app %q %w", name, catalog.ErrNotFound)
}

// model finds a model that the caller sees.
func (s scope) model(cat *serving.Catalog, name string) (*serving.Model, error) {
	if m := cat.Models[name]; m != nil && s.seesModel(cat, name) {
		return m, nil
	}
	return nil, fmt.Errorf("model %q %w", name, catalog.ErrNotFound)
}

// version finds a version of a model that the caller sees.
func (s scope) version(cat *serving.Catalog, id serving.ModelID) (*serving.Version, error) {
	if _, err := s.model(cat, id.Model); err != nil {
		return nil, err
	}
	if v := cat.Version(id); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("version %q of model %q %w", id.Version, id.Model, catalog.ErrNotFound)
}

// changesApp refuses changes of an app that the key is not for.
func (s scope) changesApp(name string) error {
	if s.seesApp(name) {
		return nil
	}
	return s.refuse(fmt.Sprintf("this is about app %q", name))
}

// changesModel refuses changes of a model that an app asks that the key is not for.
func (s scope) changesModel(cat *serving.Catalog, name string) error {
	for _, app := range asking(cat, name) {
		if !s.seesApp(app) {
			return s.refuse(fmt.Sprintf("model %q is called by other apps", name))
		}
	}
	return nil
}

// changesLinks refuses to have an app ask models and apps that the caller does not see. before
// is the app as it is, or nil.
func (s scope) changesLinks(cat *serving.Catalog, before, after *serving.App) error {
	for _, name := range after.AskedApps() {
		if !s.seesApp(name) && (before == nil || !slices.Contains(before.AskedApps(), name)) {
			return s.refuse(fmt.Sprintf("a stage calls app %q", name))
		}
	}
	for _, name := range after.Asked() {
		if before != nil && slices.Contains(before.Asked(), name) {
			continue
		}
		if cat.Models[name] != nil && !s.seesModel(cat, name) {
			return s.refuse(fmt.Sprintf("model %q is called by other apps only", name))
		}
	}
	return nil
}

func (s scope) refuse(why string) error {
	return problem.New(http.StatusForbidden, "forbidden", fmt.Sprintf("%s, and the key is for %s; use another key", why, strings.Join(s.apps, ", ")))
}
