package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/change"
	"github.com/topsail-serving/topsail/web/rest"
)

const maxCatalog = 8 << 20 // bytes of a catalog: what is exported must come in again

// Plan is what an import does.
type Plan struct {
	Applied  bool           `json:"applied"`
	Revision uint64         `json:"revision"`
	Changes  []ObjectChange `json:"changes"`
	Notes    []Note         `json:"notes"`
}

// Note is one sentence about an import.
type Note struct {
	Level string `json:"level"` // "info" or "warn"
	Text  string `json:"text"`
}

// incoming is a catalog that is to be brought in.
type incoming struct {
	apps     []serving.App
	versions []*serving.Version
	current  map[string]string
	keep     bool
	replace  bool
}

func (a *api) applyCatalog(w http.ResponseWriter, r *http.Request) error {
	caller := auth.Of(r.Context())
	if err := scopeOf(r).whole(); err != nil {
		return err
	}
	dry, err := rest.Flag(r, dryRun)
	if err != nil {
		return err
	}
	var doc Catalog
	if err := rest.ReadJSON(w, r, maxCatalog, &doc); err != nil {
		return err
	}
	in, err := doc.read()
	if err != nil {
		return err
	}
	deployed, err := ofCommit(r)
	if err != nil {
		return err
	}
	for _, v := range in.versions {
		v.Deployed = deployed
	}
	var report catalog.Report
	plan := func(cat *serving.Catalog) ([]catalog.Change, error) {
		changes, err := a.bringIn(r.Context(), cat, in, &report)
		if err != nil {
			return nil, err
		}
		return changes, keepsContract(r, cat, changes)
	}
	answer := func(before, after *serving.Catalog) error {
		changes, err := differences(viewOf(caller, before), viewOf(caller, after))
		if err != nil {
			return err
		}
		done := Plan{Applied: !dry, Revision: after.Revision, Changes: changes, Notes: notes(report)}
		if dry {
			done.Revision = before.Revision
		}
		return rest.Respond(w, http.StatusOK, done)
	}
	if !dry {
		return a.change(w, r, plan, answer)
	}
	before := a.Store.Catalog()
	after, err := dryRunOf(before, caller.Author(), plan)
	if err != nil {
		return err
	}
	return answer(before, after)
}

func dryRunOf(cat *serving.Catalog, by serving.Author, plan change.Plan) (*serving.Catalog, error) {
	changes, err := plan(cat)
	if err != nil {
		return nil, err
	}
	return change.DryRun(cat, by, changes)
}

// read is what the document brings in, as long as it is right in itself.
func (doc Catalog) read() (*incoming, error) {
	in := &incoming{current: doc.Current, keep: !doc.Prune, replace: doc.Replace}
	for _, d := range doc.Apps {
		app, err := taken(d)
		if err != nil {
			return nil, err
		}
		in.apps = append(in.apps, *app)
	}
	for _, d := range doc.Versions {
		v, err := d.read()
		if err != nil {
			return nil, err
		}
		in.versions = append(in.versions, v)
	}
	return in, nil
}

// bringIn plans the import, and reports in sentences what it does.
func (a *api) bringIn(ctx context.Context, cat *serving.Catalog, in *incoming, report *catalog.Report) ([]catalog.Change, error) {
	c := catalog.Import{Apps: in.apps, Current: in.current, Keep: in.keep, Replace: in.replace}
	for _, v := range in.versions {
		complete, err := a.complete(ctx, cat, v)
		if err != nil {
			return nil, err
		}
		c.Versions = append(c.Versions, *complete)
	}
	onPaper := c
	onPaper.Report = report
	next, err := catalog.Apply(cat, onPaper, 0)
	if err != nil {
		return nil, err
	}
	for i := range in.apps {
		name := in.apps[i].Name
		if err := checkNames(next, cat.Apps[name], next.Apps[name]); err != nil {
			return nil, err
		}
	}
	return []catalog.Change{c}, nil
}

func notes(report catalog.Report) []Note {
	list := []Note{}
	for _, n := range report {
		level := "info"
		if n.Level >= slog.LevelWarn {
			level = "warn"
		}
		list = append(list, Note{level, n.Text})
	}
	return list
}
