package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

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

// replicasEvent says how replicas are now.
type replicasEvent struct {
	Whole   bool      `json:"whole,omitempty"`
	Changed []Replica `json:"changed"`
	Gone    []string  `json:"gone"`
}

const (
	replicasEvery = 500 * time.Millisecond
	// figuresEach is how many polls there are for each that also sends what always changes, such
	// as latencies: with thousands of replicas that is much.
	figuresEach = 4
)

// lookOften sends subscribers replicas, and every second traffic.
func (s *broadcast) lookOften(ctx context.Context) {
	tick := time.NewTicker(replicasEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.takeReplicas(s.api.measured(), n%figuresEach == 0)
		if n%2 == 0 {
			s.takeTraffic(s.api.Traffic.Now())
		}
	}
}

func (s *broadcast) takeReplicas(list []Replica, figures bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed, left []Replica
	next := byID(list)
	for _, r := range list {
		before, known := s.replicas[r.ID]
		switch {
		case !known || figures && !reflect.DeepEqual(before, r) || !reflect.DeepEqual(steady(before), steady(r)):
			changed = append(changed, r)
		default:
			next[r.ID] = before // which is what subscribers know
		}
	}
	for _, r := range inOrder(s.replicas) {
		if _, there := next[r.ID]; !there {
			left = append(left, r)
		}
	}
	s.replicas = next
	if len(changed)+len(left) == 0 {
		return
	}
	s.say(func(v view) []byte {
		e := replicasEvent{Changed: v.replicas(changed), Gone: []string{}}
		for _, r := range v.replicas(left) {
			e.Gone = append(e.Gone, r.ID)
		}
		if len(e.Changed)+len(e.Gone) == 0 {
			return nil
		}
		return event("replicas", e)
	})
}

// steady is the replica without the figures that change all the time.
func steady(r Replica) Replica {
	return Replica{
		ID: r.ID, Model: r.Model, Version: r.Version, State: r.State, Reason: r.Reason, Node: r.Node,
		Allocation: r.Allocation, PID: r.PID, Restarts: r.Restarts, Since: r.Since,
	}
}

func byID(list []Replica) map[string]Replica {
	all := make(map[string]Replica, len(list))
	for _, r := range list {
		all[r.ID] = r
	}
	return all
}

func inOrder(all map[string]Replica) []Replica {
	list := make([]Replica, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[id])
	}
	return list
}
