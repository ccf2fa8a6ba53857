package api

import (
	"context"
	"net/http"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/rest"
)

const (
	maxDecisions     = 1000
	defaultDecisions = 100
)

func (l *live) listDecisions(w http.ResponseWriter, r *http.Request) error {
	limit, err := rest.Number(r, "limit", 1, maxDecisions, defaultDecisions)
	if err != nil {
		return err
	}
	var about serving.ModelID
	if about.Model, err = rest.Text(r, "model", maxWho); err != nil {
		return err
	}
	if about.Version, err = rest.Text(r, "version", maxWho); err != nil {
		return err
	}
	if about.Version != "" && about.Model == "" {
		return rest.Invalid("a version needs its model: add model=NAME")
	}
	v := l.view(r)
	n := limit
	if len(v.scope.apps) > 0 {
		n = maxDecisions // some of which are not for the caller
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	all, err := l.Scheduler.Decisions(ctx, n, about)
	if err != nil {
		return err
	}
	seen := v.decisions(all)
	return rest.Respond(w, http.StatusOK, rest.Page[serving.Decision]{Items: seen[:min(limit, len(seen))]})
}

// decisions are those about models that the caller sees; never nil.
func (v view) decisions(all []serving.Decision) []serving.Decision {
	list := make([]serving.Decision, 0, len(all))
	for _, d := range all {
		if v.seesModel(d.Model) {
			list = append(list, d)
		}
	}
	return list
}

func (l *live) getScheduler(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	status, err := l.Scheduler.Scheduler(ctx)
	if err != nil {
		return err
	}
	v := l.view(r)
	pools := make([]Pool, 0, len(status.Pools))
	for _, p := range status.Pools {
		if v.seesModel(p.Model) {
			pools = append(pools, p)
		}
	}
	status.Pools = pools
	return rest.Respond(w, http.StatusOK, status)
}
