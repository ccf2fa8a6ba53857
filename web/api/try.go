package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

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
	if l.AskParts != nil && strings.Contains(r.Header.Get("Accept"), eventStream) {
		return l.tryParts(w, r, app.Name, body)
	}
	ctx, cancel := context.WithTimeout(r.Context(), (app.SLO+app.ColdStart).Std()+within)
	defer cancel()
	trial, err := l.Ask(ctx, app.Name, body)
	if err != nil {
		return err
	}
	return respondTrial(w, trial)
}

const eventStream = "text/event-stream"

// tryParts passes on an answer in parts as it comes. The gateway knows how long it may take; it stops when the
// client leaves. What the gateway answers otherwise is answered as without parts.
func (l *live) tryParts(w http.ResponseWriter, r *http.Request, app string, body []byte) error {
	ctx, cancel := l.reading(r, true)
	defer cancel()
	parts, trial, err := l.AskParts(ctx, app, body)
	if err != nil {
		return err
	}
	if parts == nil {
		return respondTrial(w, trial)
	}
	defer parts.Close()
	newStream(w, eventStream).pass(parts)
	return nil
}

func respondTrial(w http.ResponseWriter, trial Trial) error {
	trial.Stages = append([]Stage{}, trial.Stages...)
	return rest.Respond(w, http.StatusOK, trial)
}
