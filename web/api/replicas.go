package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/rest"
)

// measured are all replicas by id, with what their sidecars have measured.
func (a *api) measured() []Replica {
	all := slices.Clone(a.Replicas.Replicas())
	for i := range all {
		a.Traffic.Measured(&all[i])
	}
	return all
}

// replicas are those of the models that the caller sees; never nil.
func (v view) replicas(all []Replica) []Replica {
	list := make([]Replica, 0, len(all))
	for _, r := range all {
		if v.seesModel(r.Model) {
			list = append(list, r)
		}
	}
	return list
}

func (l *live) listReplicas(w http.ResponseWriter, r *http.Request) error {
	model, err := rest.Text(r, "model", maxWho)
	if err != nil {
		return err
	}
	version, err := rest.Text(r, "version", maxWho)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(l.view(r).replicas(l.Replicas.Replicas()), func(one Replica) bool {
		return model != "" && one.Model != model || version != "" && one.Version != version
	})
	page, err := rest.PageOf(r, list, func(one Replica) string { return one.ID }, func(one Replica) Replica {
		l.Traffic.Measured(&one)
		return one
	})
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, page)
}

func (l *live) getReplica(w http.ResponseWriter, r *http.Request) error {
	one, err := l.replica(r)
	if err != nil {
		return err
	}
	l.Traffic.Measured(&one)
	if one.Name != "" {
		one.Stages = l.Traffic.Stages(serving.ModelID{Model: one.Model, Version: one.Version}, one.Name, stagesWindow).Stages
	}
	return rest.Respond(w, http.StatusOK, one)
}

// replica finds the one that the path names, if the caller sees it.
func (l *live) replica(r *http.Request) (Replica, error) {
	id := r.PathValue("replica")
	for _, one := range l.view(r).replicas(l.Replicas.Replicas()) {
		if one.ID == id {
			return one, nil
		}
	}
	return Replica{}, ErrNoReplica
}

func (l *live) restartReplica(w http.ResponseWriter, r *http.Request) error {
	return l.handle(w, r, "restart", l.Replicas.Restart)
}

func (l *live) drainReplica(w http.ResponseWriter, r *http.Request) error {
	return l.handle(w, r, "drain", l.Replicas.Drain)
}

// handle does something with the replica that the path names, and notes it.
func (l *live) handle(w http.ResponseWriter, r *http.Request, action string, do func(ctx context.Context, id string) error) error {
	one, err := l.replica(r)
	if err != nil {
		return err
	}
	if err := scopeOf(r).changesModel(l.Store.Catalog(), one.Model); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	if err := do(ctx, one.ID); err != nil {
		return err
	}
	before, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if err := l.note(r, action, "replica", one.ID, before, nil); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
