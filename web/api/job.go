package api

import (
	"context"
	"net/http"

	"github.com/topsail-serving/topsail/web/rest"
)

func (a *api) getJob(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	version, err := v.scope.version(v.cat, versionOf(r))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	job, err := a.Job(ctx, version.ModelID, v.open())
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, job)
}
