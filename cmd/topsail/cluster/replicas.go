package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/manage"
	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// lookEvery is how often Nomad is asked which replicas there are. Consul reports when one becomes
// ready.
const lookEvery = 2 * time.Second

// replicas are those of a cluster: Nomad says which run, and Consul which are ready.
type replicas struct {
	fleet   *nomadfleet.Fleet
	catalog func() *serving.Catalog
	log     *slog.Logger

	calls      func(serving.ModelID) []api.Replica // how gateways see the instances of a service
	usages     *usages
	running    atomic.Pointer[[]nomadfleet.Replica]
	registered atomic.Pointer[[]serving.Endpoint]
}

func newReplicas(fleet *nomadfleet.Fleet, catalog func() *serving.Catalog, log *slog.Logger) *replicas {
	r := &replicas{fleet: fleet, catalog: catalog, log: log, usages: &usages{ask: fleet.Usage}}
	r.running.Store(&[]nomadfleet.Replica{})
	r.registered.Store(&[]serving.Endpoint{})
	return r
}

// follow keeps the list of what Nomad runs until ctx ends. While Nomad does not answer
// the last one stays.
func (r *replicas) follow(ctx context.Context) error {
	listing := condition.Condition{Log: r.log, Begins: "Nomad does not list its replicas; the last list is shown"}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	ends := ends{read: r.fleet.Logs}
	var looking sync.WaitGroup
	defer looking.Wait()
	looking.Go(func() { r.usages.follow(ctx, func() []nomadfleet.Replica { return *r.running.Load() }) })
	for {
		list, err := r.fleet.Replicas(ctx)
		ends.tell(ctx, list)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			r.running.Store(&list)
		}
		listing.Note(err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// endpoints are the replicas that Consul knows.
func (r *replicas) endpoints() []serving.Endpoint { return *r.registered.Load() }

// Replicas implements api.Replicas. A replica that Nomad does not run, but that
// announces itself, is shown as Consul has it.
func (r *replicas) Replicas() []api.Replica {
	cat, byJob := r.catalog(), map[string]serving.ModelID{}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			byJob[jobs.ID(v.ModelID)] = v.ModelID
		}
	}
	known := map[string]serving.Endpoint{}
	for _, e := range r.endpoints() {
		known[e.Replica] = e
	}
	var list []api.Replica
	for _, run := range *r.running.Load() {
		e, there := known[run.ID]
		delete(known, run.ID)
		id, registered := byJob[run.Job]
		if !registered && len(e.Models) == 0 {
			continue // of a version that is gone, and ends
		}
		if len(e.Models) > 0 {
			id = e.Models[0].ModelID
		}
		one := describe(run, id, there && e.Ready)
		r.usages.fill(&one)
		if len(e.Models) > 0 {
			manage.Redefined(&one, e.Models[0], cat)
		}
		list = append(list, one)
	}
	for _, e := range known {
		if len(e.Models) == 0 {
			continue
		}
		one := api.Replica{ID: e.Replica, Name: e.Replica, Model: e.Models[0].Model, Version: e.Models[0].Version, State: "starting"}
		if e.Ready {
			one.State = "ready"
		}
		list = append(list, one)
	}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			if v.Service != nil {
				list = append(list, instancesOf(r.calls(v.ModelID))...)
			}
		}
	}
	slices.SortFunc(list, func(a, b api.Replica) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// instancesOf are the instances of a service, which each gateway calls by itself.
func instancesOf(list []api.Replica) []api.Replica {
	for i := range list {
		list[i].ID = strings.ReplaceAll(list[i].ID, "/", "~")
		if list[i].State == "failed" {
			list[i].Reason = "it is not ready; the gateway's log says why"
		}
	}
	return list
}

// describe is a replica as Nomad runs it, ready as Consul says.
func describe(run nomadfleet.Replica, id serving.ModelID, ready bool) api.Replica {
	one := api.Replica{
		ID: run.ID, Name: run.ID, Allocation: run.ID, Model: id.Model, Version: id.Version, State: run.State, Reason: run.Reason,
		Node: run.Node, Restarts: run.Restarts, Since: run.Since,
	}
	switch {
	case run.State == nomadfleet.Running && ready:
		one.State, one.Reason = "ready", ""
	case run.State == nomadfleet.Running:
		one.State = "starting"
	}
	return one
}

// Restart implements api.Replicas.
func (r *replicas) Restart(ctx context.Context, id string) error {
	return replicaError(r.fleet.Restart(ctx, id))
}

// Drain implements api.Replicas.
func (r *replicas) Drain(ctx context.Context, id string) error {
	return replicaError(r.fleet.Drain(ctx, id))
}

func replicaError(err error) error {
	if errors.Is(err, nomadfleet.ErrNoReplica) {
		return api.ErrNoReplica
	}
	return err
}
