package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"topsail/gateway"
	"topsail/gateway/route"
	"topsail/internal/filestore"
	"topsail/serving"
	"topsail/web"
	"topsail/web/clipper"
)

// view is the whole system as pages and health checks show it.
type view struct {
	store   *filestore.Store
	gateway *gateway.Gateway
	fleet   *fleet
	addr    string // of the gateway
}

// Status implements web.System.
func (v *view) Status() web.Status {
	cat := v.store.Catalog()
	s := web.Status{Gateway: v.addr, Catalog: cat}
	seen := map[string]route.Status{}
	for _, r := range v.gateway.Replicas() {
		seen[r.Replica] = r
	}
	processes := v.fleet.processes()
	for _, name := range v.fleet.living() {
		r := web.Replica{Name: name, State: "starting"}
		if p, ok := processes[name]; ok {
			r.State, r.Reason, r.Restarts, r.PID = p.State.String(), p.Reason, p.Restarts, p.PID
		}
		if g := seen[name]; len(g.Models) > 0 {
			r.State, r.Models, r.InFlight, r.Latency = "ready", g.Models, g.InFlight, g.Latency
			if g.Ejected {
				r.State = "ejected"
			}
		}
		s.Replicas = append(s.Replicas, r)
	}
	return s
}

// Learned implements web.System.
func (v *view) Learned(ctx context.Context, app, user, about string) (*serving.Learning, error) {
	return gateway.Learned(ctx, v.store, v.store.Catalog(), app, user, about)
}

// Store implements web.System.
func (v *view) Store() clipper.Store { return v.store }

// waiting lists the linked models that have no ready replica, with the reason
// where one is known.
func (v *view) waiting() []string {
	cat, ready := v.store.Catalog(), map[serving.ModelID]bool{}
	for _, r := range v.gateway.Replicas() {
		for _, id := range r.Models {
			ready[id] = true
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(cat.Apps)) {
		for _, m := range cat.Apps[name].Asked() {
			if cat.Models[m] == nil {
				continue // the model that decides need not be there
			}
			id := serving.ModelID{Model: m, Version: cat.Models[m].Current}
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
