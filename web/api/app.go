package api

import (
	"fmt"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/rest"
)

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
