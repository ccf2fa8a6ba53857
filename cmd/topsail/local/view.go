package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/manage"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/cmd/topsail/services"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/artifact"
	"github.com/topsail-serving/topsail/web/traffic"
)

// view is the whole system as the management side and health checks show it.
type view struct {
	store    *filestore.Store
	gateway  *gateway.Gateway
	fleet    *fleet
	usage    *usage
	services *services.Services
	traffic  *traffic.Collector
	bundles  *artifact.Store
	addr     string // of the gateway
	started  time.Time

	up atomic.Bool // all models have started, or failed to
}

func (v *view) replicas() replicas { return replicas{v.fleet, v.gateway, v.usage, v.services} }

// system is what the management side manages.
func (v *view) system(base *role.Base, journal *inprocess.Decisions) (manage.System, error) {
	client, err := base.Client()
	return manage.System{
		Mode: "local", Store: followed{v.store, v.gateway}, Replicas: v.replicas(), Endpoints: v.endpoints,
		Scheduler: manage.Scheduler{Traffic: v.traffic, Catalog: v.store.Catalog, DryRun: base.Config.Scheduler.DryRun, Journal: journal},
		Gateway:   func() string { return base.Scheme() + v.addr },
		Cluster:   v.cluster, Job: v.job, Traffic: v.traffic, HTTP: client,
	}, err
}

// endpoints are the replicas that serve, with the versions that they run as they are defined now.
func (v *view) endpoints() []serving.Endpoint {
	var list []serving.Endpoint
	cat := v.store.Catalog()
	for _, r := range v.gateway.Replicas() {
		e := serving.Endpoint{Replica: r.Replica, Ready: true}
		for _, d := range r.Models {
			if one := cat.Version(d.ModelID); one != nil && slices.Contains(cat.Definitions(one), d) {
				e.Models = append(e.Models, serving.Definition{ModelID: d.ModelID})
			}
		}
		if len(e.Models) > 0 {
			list = append(list, e)
		}
	}
	return list
}

// cluster is the one process that there is.
func (v *view) cluster(ctx context.Context) api.Cluster {
	revision := v.store.Catalog().Revision
	c := api.Cluster{
		Processes: []api.Process{{
			Role: "local", Name: "local", Addr: v.addr, State: "ok", Leader: true, Revision: revision,
			Detail: "gateway, scheduler and management in one process, since " + v.started.UTC().Format(time.RFC3339),
		}},
		Servers: check.Run(ctx, []check.Check{v.checkStore, manage.CheckRoom(v.bundles, v.store.Catalog)}),
	}
	c.Alarms = manage.Alarms(c.Servers, v.traffic, v.replicas().Replicas())
	return c
}

func (v *view) checkStore(ctx context.Context) []check.Finding {
	if err := v.store.Condition(); err != nil {
		return []check.Finding{check.Bad("store", strings.ReplaceAll(err.Error(), "\n", "; "), "")}
	}
	return []check.Finding{check.Good("store", "the file in the data directory, at revision %d", v.store.Catalog().Revision)}
}

// job is the command of a version's replicas. Variables are left out: they may be secrets.
func (v *view) job(_ context.Context, id serving.ModelID, secrets bool) (api.Job, error) {
	version := v.store.Catalog().Version(id)
	if version == nil {
		return api.Job{}, fmt.Errorf("%w: version %v does not exist", api.ErrRefused, id)
	}
	r := replica{model: version, runtime: v.fleet.runtime, bundles: v.fleet.bundles}
	text := "container at " + version.Container.Addr
	if argv := r.argv(); len(argv) > 0 {
		text = strings.Join(argv, " ")
		if dir := version.Container.Dir; dir != "" {
			text = "cd " + dir + " && " + text
		}
	} else if version.Service != nil {
		text = "a service that others run: " + cmp.Or(version.Service.Name, strings.Join(version.Service.Addrs, ", "))
	} else if err := version.Container.Check(); err != nil {
		text = err.Error()
	}
	if !secrets {
		text = catalog.RedactURLs(text)
	}
	return api.Job{Kind: "process", Text: text}, nil
}

// missing is a linked model without a ready replica.
type missing struct {
	id  serving.ModelID
	why string // empty: it starts for the first time
}

// missing lists the linked models that have no ready replica, and says of how many.
func (v *view) missing() (list []missing, linked int) {
	cat, ready := v.store.Catalog(), map[serving.ModelID]bool{}
	for _, e := range v.endpoints() {
		for _, d := range e.Models {
			ready[d.ModelID] = true
		}
	}
	seen := map[serving.ModelID]bool{}
	for _, name := range slices.Sorted(maps.Keys(cat.Apps)) {
		for _, m := range cat.Apps[name].Asked() {
			if cat.Models[m] == nil {
				continue // the model that decides need not be there
			}
			id := serving.ModelID{Model: m, Version: cat.Models[m].Current}
			if current := cat.Version(id); current != nil && current.HostedBy != "" { // loaded when it is asked
				id = serving.ModelID{Model: current.HostedBy, Version: cat.Models[current.HostedBy].Current}
			}
			if seen[id] {
				continue
			}
			seen[id] = true
			if v.wanted(cat, id) && !ready[id] {
				list = append(list, missing{id, v.failure(id)})
			}
		}
	}
	return list, len(seen)
}

// failure says what a version's replicas ended of; empty where none has.
func (v *view) failure(id serving.ModelID) string {
	for _, m := range v.fleet.members() {
		if m.model.ModelID != id {
			continue
		}
		if r := describe(m, route.Status{}); r.State == "failed" || r.Restarts > 0 {
			return cmp.Or(r.Reason, r.State)
		}
	}
	return v.instanceFailure(id)
}

// patience is how long an instance of a service may take to answer for the first time before that is a failure.
const patience = 3 * time.Second

// instanceFailure says why no instance of a service answers; empty where one may soon, or it is none.
func (v *view) instanceFailure(id serving.ModelID) string {
	version := v.store.Catalog().Version(id)
	if version == nil || version.Service == nil || time.Since(v.started) < patience {
		return ""
	}
	for _, i := range v.services.Instances() {
		if i.Model.ModelID == id && i.Problem != nil {
			return i.Problem.Error()
		}
	}
	return "no instance of the service is known"
}

// wanted says whether a current version is to have replicas now. One that scales
// starts once, and may go to zero after that.
func (v *view) wanted(cat *serving.Catalog, id serving.ModelID) bool {
	current := cat.Version(id)
	switch {
	case current == nil:
		return false
	case !current.OwnReplicas():
		return true
	case current.Scale == nil:
		return current.Replicas > 0
	}
	return cat.Models[id.Model].Serving != id.Version || v.fleet.count(id) > 0
}

// startWithin is how long a process that has been started is not ready because models start. After
// that, it serves what it has.
const startWithin = 5 * time.Minute

// ready says why the process had better not be asked, or nil: its models are starting for the first
// time, or none of them can be asked. A few that fail among others are conditions.
func (v *view) ready() error {
	list, linked := v.missing()
	starting := startingOf(list)
	if len(starting) == 0 || time.Since(v.started) > startWithin {
		v.up.Store(true)
	}
	switch {
	case !v.up.Load():
		return errors.New("starting " + strings.Join(starting, ", "))
	case linked > 0 && len(list) == linked:
		return errors.Join(v.conditions(), errors.New("no model has a ready replica"))
	}
	return nil
}

// conditions says which models have no ready replica though the process has been ready.
func (v *view) conditions() error {
	list, _ := v.missing()
	var all []error
	for _, m := range list {
		switch {
		case m.why != "":
			all = append(all, fmt.Errorf("%v has no ready replica: %s", m.id, m.why))
		case v.up.Load():
			all = append(all, fmt.Errorf("%v has no ready replica: it is starting", m.id))
		}
	}
	return errors.Join(all...)
}

// startingOf are the names of those that start for the first time.
func startingOf(list []missing) (names []string) {
	for _, m := range list {
		if m.why == "" {
			names = append(names, m.id.String())
		}
	}
	return names
}
