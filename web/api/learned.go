package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/rest"
)

// maxWho bounds the names of users and contexts, in bytes.
const maxWho = 256

// learned finds the app, and the user and context, that a request is about.
func (a *api) learned(r *http.Request) (app, user, about string, err error) {
	if user, err = rest.Text(r, "uid", maxWho); err != nil {
		return "", "", "", err
	}
	if about, err = rest.Text(r, "context", maxWho); err != nil {
		return "", "", "", err
	}
	found, err := scopeOf(r).app(a.Store.Catalog(), r.PathValue("app"))
	if err != nil {
		return "", "", "", err
	}
	return found.Name, user, about, nil
}

func (a *api) getLearned(w http.ResponseWriter, r *http.Request) error {
	app, user, about, err := a.learned(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	l, err := a.Learning.Learned(ctx, app, user, about)
	if err != nil {
		return err
	}
	shown := *l
	shown.Models = append([]serving.ModelLearning{}, l.Models...)
	return rest.Respond(w, http.StatusOK, shown)
}

func (a *api) forgetLearned(w http.ResponseWriter, r *http.Request) error {
	app, user, about, err := a.learned(r)
	if err != nil {
		return err
	}
	if err := scopeOf(r).changesApp(app); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	before, err := a.Learning.Learned(ctx, app, user, about)
	if err != nil {
		return err
	}
	text, err := json.Marshal(before)
	if err != nil {
		return err
	}
	if err := a.Learning.Forget(ctx, app, user, about); err != nil {
		return err
	}
	if err := a.note(r, "forget", "learned", app, text, nil); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
