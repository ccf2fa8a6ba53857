package api

import (
	"context"
	"net/http"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/change"
	"github.com/topsail-serving/topsail/web/rest"
)

// within bounds a change, waiting for others included.
const within = 10 * time.Second

// edit changes the catalog as plan wants for the caller, and has answer answer with
// what they see of it before and after. With dry_run it says what it would do.
func (a *api) edit(w http.ResponseWriter, r *http.Request, plan func(view) ([]catalog.Change, error), answer func(before, after view) error) error {
	dry, err := rest.Flag(r, dryRun)
	if err != nil {
		return err
	}
	caller := auth.Of(r.Context())
	planned := func(cat *serving.Catalog) ([]catalog.Change, error) { return plan(viewOf(caller, cat)) }
	if dry {
		return a.preview(w, a.view(r), planned)
	}
	return a.change(w, r, planned, func(before, after *serving.Catalog) error {
		return answer(viewOf(caller, before), viewOf(caller, after))
	})
}

// change makes the changes that plan wants, and has answer answer.
func (a *api) change(w http.ResponseWriter, r *http.Request, plan change.Plan, answer func(before, after *serving.Catalog) error) error {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	before, after, err := a.writer.Make(ctx, auth.Of(r.Context()).Author(), plan)
	if err != nil {
		return err
	}
	return answer(before, after)
}

// editIf is edit with the conditions of the request. tag is the ETag of the object
// that it is about, or why it cannot be changed.
func (a *api) editIf(w http.ResponseWriter, r *http.Request, tag func(view) (string, error),
	plan func(view) ([]catalog.Change, error), answer func(before, after view) error) error {
	condition, err := rest.ConditionOf(r)
	if err != nil {
		return err
	}
	return a.edit(w, r, func(v view) ([]catalog.Change, error) {
		etag, err := tag(v)
		if err == nil {
			err = condition.Check(etag)
		}
		if err != nil {
			return nil, err
		}
		return plan(v)
	}, answer)
}

func (a *api) preview(w http.ResponseWriter, v view, plan change.Plan) error {
	changes, err := plan(v.cat)
	if err != nil {
		return err
	}
	after, err := change.DryRun(v.cat, v.caller.Author(), changes)
	if err != nil {
		return err
	}
	differ, err := differences(v, v.of(after))
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, DryRun{DryRun: true, Changes: differ, Effects: a.effects(v, after)})
}
