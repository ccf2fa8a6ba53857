package models

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// Removal is of a version, of a model with all its versions, or of an app.
type Removal struct {
	Model   string `json:"model,omitempty"`
	Version string `json:"version,omitempty"` // empty: all of them
	App     string `json:"app,omitempty"`     // instead of a model
	Unlink  bool   `json:"unlink,omitempty"`  // apps that ask the model ask it no longer; else what they use stays
}

// check says everything that is wrong with the removal by itself, or nil.
func (r *Removal) check() error {
	switch {
	case r.App != "" && *r != Removal{App: r.App}:
		return errors.New("remove an app alone, without model, version and unlink")
	case r.App != "":
		return serving.CheckAppName(r.App)
	case r.Version != "":
		return errors.Join(serving.CheckModelName(r.Model), serving.CheckVersion(r.Version))
	}
	return serving.CheckModelName(r.Model)
}

// content is a checksum of the whole.
func (r *Removal) content() string { return contentOf(r) }

// path is where the management API has what is to be removed.
func (r *Removal) path() []string {
	switch {
	case r.App != "":
		return []string{"apps", r.App}
	case r.Version != "":
		return []string{"models", r.Model, "versions", r.Version}
	}
	return []string{"models", r.Model}
}

// removal is a removal on its way.
type removal struct {
	handler *handler
	what    *Removal
	origin  origin
}

// checked says what is wrong with the removal, or nil.
func (r *removal) checked() *stream.Rejection {
	if err := r.what.check(); err != nil {
		return rejected(Invalid, "%v", err)
	}
	return nil
}

// run removes what is there, unless that came after the removal. It fails with a rejection, or with
// what may pass.
func (r *removal) run(ctx context.Context) (Acknowledgement, error) {
	ack := Acknowledgement{Outcome: Removed, Model: r.what.Model, Version: r.what.Version, App: r.what.App}
	found, apps, etag, err := r.find(ctx)
	if is(err, http.StatusNotFound) {
		ack.Outcome = Unchanged
		return ack, nil
	}
	if err != nil {
		return ack, err
	}
	if slices.ContainsFunc(found, r.cameBefore) {
		ack.Outcome = Outdated
		return ack, nil
	}
	_, err = r.handler.api.do(ctx, apiclient.Request{Method: http.MethodDelete, Path: r.what.path(), IfMatch: etag}, nil)
	switch {
	case is(err, http.StatusPreconditionFailed, http.StatusNotFound):
		return ack, errAgain
	case inUse(err) && r.what.Unlink:
		return ack, r.unlink(ctx, apps, err)
	case inUse(err) && r.what.Version != "" && found[0].Serving && !found[0].Current:
		return ack, errServing{err}
	}
	return ack, refused(err, "the removal")
}

// find looks for what is to be removed: an app, which is like a version here, a version or all
// versions of a model, and the apps that ask them.
func (r *removal) find(ctx context.Context) (found []version, apps []string, etag string, err error) {
	if r.what.App == "" && r.what.Version == "" {
		var model struct {
			Apps []string `json:"apps"`
		}
		if etag, err = r.handler.api.do(ctx, apiclient.Request{Path: r.what.path()}, &model); err == nil {
			found, err = r.handler.api.versions(ctx, r.what.Model)
		}
		return found, model.Apps, etag, err
	}
	var one version
	etag, err = r.handler.api.do(ctx, apiclient.Request{Path: r.what.path()}, &one)
	return []version{one}, one.UsedBy, etag, err
}

// cameBefore says whether the removal was written before something was made, by a later update or by
// someone else: it is not about that.
func (r *removal) cameBefore(v version) bool {
	if made, ours := parseOrigin(v.Labels); ours {
		return made.after(r.origin)
	}
	return v.Deployed != nil && v.Deployed.At.After(r.origin.at)
}

// unlink takes the model from those of the apps that link it, and has the removal tried again. An app
// that names the model in its stages or its policy keeps it: then the removal is refused.
func (r *removal) unlink(ctx context.Context, apps []string, why error) error {
	changed := false
	for _, name := range apps {
		_, err := r.handler.api.do(ctx, apiclient.Request{Method: http.MethodDelete, Path: []string{"apps", name, "links", r.what.Model}}, nil)
		if err != nil && !is(err, http.StatusNotFound) {
			return refused(err, "that app "+name+" calls the model no longer")
		}
		changed = changed || err == nil
	}
	if !changed {
		return refused(why, "the removal")
	}
	return errAgain
}

// inUse says whether the API refuses to remove what apps use.
func inUse(err error) bool { return hasCode(err, "in_use") }
