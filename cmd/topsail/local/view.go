package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/manage"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/artifact"
	"github.com/topsail-serving/topsail/web/traffic"
)

// view is the whole system as the management side and health checks show it.
type view struct {
	store   *filestore.Store
	gateway *gateway.Gateway
	fleet   *fleet
	traffic *traffic.Collector
	bundles *artifact.Store
	addr    string // of the gateway
	started time.Time
}

// system is what the management side manages.
func (v *view) system(base *role.Base, journal *inprocess.Decisions) (manage.System, error) {
	client, err := base.Client()
	return manage.System{
		Mode: "local", Store: followed{v.store, v.gateway}, Replicas: replicas{v.fleet, v.gateway}, Endpoints: v.endpoints,
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
		Servers: []api.Server{{Name: "store", State: "ok", Detail: fmt.Sprintf("the file in the data directory, at revision %d", revision), Checked: time.Now().UTC()}},
	}
	if err := v.store.Condition(); err != nil {
		c.Servers[0].State, c.Servers[0].Detail = "failed", strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	for _, f := range manage.CheckRoom(v.bundles, v.store.Catalog)(ctx) {
		c.Servers = append(c.Servers, manage.Server(f))
	}
	c.Alarms = manage.Alarms(c.Servers, v.traffic, replicas{v.fleet, v.gateway}.Replicas())
	return c
}

// job is the command of a version's replicas. Variables are left out: they may be secrets.
func (v *view) job(_ context.Context, id serving.ModelID) (api.Job, error) {
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
	} else if err := version.Container.Check(); err != nil {
		text = err.Error()
	}
	return api.Job{Kind: "process", Text: text}, nil
}

// waiting lists the linked models that have no ready replica, with the reason
// where one is known.
func (v *view) waiting() []string {
	cat, ready := v.store.Catalog(), map[serving.ModelID]bool{}
	for _, e := range v.endpoints() {
		for _, d := range e.Models {
			ready[d.ModelID] = true
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(cat.Apps)) {
		for _, m := range cat.Apps[name].Asked() {
			if cat.Models[m] == nil {
				continue // the model that decides need not be there
			}
			id := serving.ModelID{Model: m, Version: cat.Models[m].Current}
			if current := cat.Version(id); current != nil && current.HostedBy != "" { // loaded when it is asked
				id = serving.ModelID{Model: current.HostedBy, Version: cat.Models[current.HostedBy].Current}
			}
			if v.wanted(cat, id) && !ready[id] && !slices.Contains(list, id.String()) {
				list = append(list, id.String())
			}
		}
	}
	return list
}

// wanted says whether a current version is to have replicas now. One that scales
// starts once, and may go to zero after that.
func (v *view) wanted(cat *serving.Catalog, id serving.ModelID) bool {
	current := cat.Version(id)
	switch {
	case current == nil:
		return false
	case current.Scale == nil:
		return current.Replicas > 0
	}
	return cat.Models[id.Model].Serving != id.Version || v.fleet.count(id) > 0
}

// ready says why the system is not ready, or nil.
func (v *view) ready() error {
	if list := v.waiting(); len(list) > 0 {
		return errors.New("no ready replica of " + fmt.Sprint(list))
	}
	return nil
}
