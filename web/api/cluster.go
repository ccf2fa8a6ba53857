package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/problem"
	"github.com/topsail-serving/topsail/web/rest"
)

const (
	glanceLasts   = 2 * time.Second // for which one look serves all viewers
	clusterEvery  = 5 * time.Second
	clusterWithin = 5 * time.Second
)

// glance looks at the cluster for all viewers, so that many of them do not ask its servers more
// often than one.
type glance struct {
	look func(context.Context) Cluster
	turn chan struct{} // holds a token of the goroutine that uses what follows
	at   time.Time
	seen Cluster
}

// cluster is the cluster as it was not long ago.
func (g *glance) cluster(ctx context.Context) (Cluster, error) {
	waiting, cancel := context.WithTimeout(ctx, clusterWithin)
	defer cancel()
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-waiting.Done():
		return Cluster{}, fmt.Errorf("look at the cluster: %w", waiting.Err())
	}
	if !g.at.IsZero() && time.Since(g.at) <= glanceLasts {
		return g.seen, nil
	}
	looking, cancel := context.WithTimeout(ctx, clusterWithin)
	defer cancel()
	seen := g.look(looking)
	if ctx.Err() != nil { // the client has left, and what is seen may be half of it
		return Cluster{}, ctx.Err()
	}
	g.seen, g.at = seen, time.Now()
	return seen, nil
}

func (l *live) getCluster(w http.ResponseWriter, r *http.Request) error {
	c, err := l.glance.cluster(r.Context())
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, l.view(r).cluster(c, l.Replicas.Replicas()))
}

// maxProcesses bounds how many of a role can be asked for.
const maxProcesses = 1000

// setCount sets how many processes of a role there are to be.
func (l *live) setCount(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Count  int    `json:"count" required:"yes"`
		Reason string `json:"reason"`
	}
	if err := rest.ReadJSON(w, r, rest.MaxBody, &body); err != nil {
		return err
	}
	role := r.PathValue("role")
	switch {
	case !slices.Contains(Roles, role):
		return problem.New(http.StatusNotFound, "not_found", fmt.Sprintf("there is no role %q: use one of %s", role, strings.Join(Roles, ", ")))
	case body.Count < 1 || body.Count > maxProcesses:
		return rest.Invalid("count must be between 1 and %d", maxProcesses)
	case len(body.Reason) > maxWho:
		return rest.Invalid("reason has more than %d bytes", maxWho)
	case l.SetCount == nil:
		return fmt.Errorf("%w: in local mode one process has every role", ErrRefused)
	}
	if err := scopeOf(r).whole(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	if err := l.SetCount(ctx, role, body.Count, fmt.Sprintf("by %s: %s", auth.Of(r.Context()).Name, cmp.Or(body.Reason, "set by hand"))); err != nil {
		return err
	}
	after, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if err := l.note(r, "scale", "role", role, nil, after); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// cluster is what the caller sees of the cluster: alarms about objects that they see,
// and all else. No list is nil.
func (v view) cluster(c Cluster, replicas []Replica) Cluster {
	c.Processes = append([]Process{}, c.Processes...)
	c.Servers = append([]check.Finding{}, c.Servers...)
	c.Alarms = slices.DeleteFunc(append([]check.Finding{}, c.Alarms...), func(a check.Finding) bool { return !v.seesAlarm(a, replicas) })
	return c
}

func (v view) seesAlarm(a check.Finding, replicas []Replica) bool {
	switch model, _, _ := strings.Cut(a.Name, ":"); {
	case len(v.scope.apps) == 0:
		return true
	case a.Kind == "app":
		return v.scope.seesApp(a.Name)
	case a.Kind == "model", a.Kind == "version":
		return v.seesModel(model)
	case a.Kind == "replica":
		return slices.ContainsFunc(v.replicas(replicas), func(r Replica) bool { return r.ID == a.Name })
	}
	return true
}

// changes informs subscribers when the state of the cluster changes.
type changes struct {
	*broadcast
	glance *glance
	before *Cluster // nil: not seen yet
}

func (c *changes) follow(ctx context.Context) {
	tick := time.NewTicker(clusterEvery)
	defer tick.Stop()
	for {
		if now, err := c.glance.cluster(ctx); err == nil {
			c.take(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *changes) take(now Cluster) {
	compared := now
	compared.Servers = slices.Clone(now.Servers)
	for i := range compared.Servers {
		compared.Servers[i].Checked = time.Time{} // a new look alone is not a change
	}
	same := c.before != nil && reflect.DeepEqual(*c.before, compared)
	first := c.before == nil
	c.before = &compared
	if same || first {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.say("cluster", notice{})
}
