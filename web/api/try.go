package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/topsail-serving/topsail/web/rest"
)

// tryApp asks a gateway, and shows what it answered and where the time went.
func (l *live) tryApp(w http.ResponseWriter, r *http.Request) error {
	app, err := scopeOf(r).app(l.Store.Catalog(), r.PathValue("app"))
	if err != nil {
		return err
	}
	body, err := rest.ReadBody(w, r, rest.MaxBody, rest.JSONType)
	if err != nil {
		return err
	}
	var query map[string]json.RawMessage
	if err := rest.CheckJSON(body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, &query); err != nil || query == nil {
		return rest.Invalid(`the body must be an object, as in a query to the gateway: {"input": …}`)
	}
	ctx, cancel := context.WithTimeout(r.Context(), (app.SLO+app.ColdStart).Std()+within)
	defer cancel()
	trial, err := l.Ask(ctx, app.Name, body)
	if err != nil {
		return err
	}
	trial.Stages = append([]Stage{}, trial.Stages...)
	return rest.Respond(w, http.StatusOK, trial)
}
