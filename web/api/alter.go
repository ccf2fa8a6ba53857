package api

import (
	"context"
	"net/http"
	"time"

	"topsail/serving"
	"topsail/serving/catalog"
	"topsail/web/auth"
	"topsail/web/change"
)

// within bounds a change, waiting for others included.
const within = 10 * time.Second

// alter changes the catalog as plan wants for the caller, and has answer answer with
// what they see of it before and after. With dry_run it says what it would do.
func (a *api) alter(w http.ResponseWriter, r *http.Request, plan func(view) ([]catalog.Change, error), answer func(before, after view) error) error {
	dry, err := flag(r, dryRun)
	if err != nil {
		return err
	}
	caller := auth.Of(r.Context())
	planned := func(cat *serving.Catalog) ([]catalog.Change, error) { return plan(viewOf(caller, cat)) }
	if dry {
		return a.rehearse(w, a.view(r), planned)
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	before, after, err := a.turns.Make(ctx, caller.Author(), planned)
	if err != nil {
		return err
	}
	return answer(viewOf(caller, before), viewOf(caller, after))
}

// alterIf is alter with the conditions of the request. tag is the ETag of the object
// that it is about, or why it cannot be changed.
func (a *api) alterIf(w http.ResponseWriter, r *http.Request, tag func(view) (string, error),
	plan func(view) ([]catalog.Change, error), answer func(before, after view) error) error {
	condition, err := conditionOf(r)
	if err != nil {
		return err
	}
	return a.alter(w, r, func(v view) ([]catalog.Change, error) {
		etag, err := tag(v)
		if err == nil {
			err = condition.check(etag)
		}
		if err != nil {
			return nil, err
		}
		return plan(v)
	}, answer)
}

func (a *api) rehearse(w http.ResponseWriter, v view, plan change.Plan) error {
	changes, err := plan(v.cat)
	if err != nil {
		return err
	}
	after, err := change.Rehearse(v.cat, v.caller.Author(), changes)
	if err != nil {
		return err
	}
	differ, err := differences(v, v.of(after))
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, Rehearsal{DryRun: true, Changes: differ, Effects: a.effects(v, after)})
}
