package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"topsail/gateway"
	"topsail/gateway/state"
	"topsail/serving"
	"topsail/web"
)

// view is the cluster as the pages show it.
type view struct {
	gateway  string // an address to ask, for the pages' examples
	catalog  func() *serving.Catalog
	states   state.Store
	replicas atomic.Pointer[[]serving.Endpoint]
}

func newView(gateway string, catalog func() *serving.Catalog, states state.Store) *view {
	v := &view{gateway: gateway, catalog: catalog, states: states}
	v.replicas.Store(&[]serving.Endpoint{})
	return v
}

// follow keeps the list of replicas until ctx ends.
func (v *view) follow(ctx context.Context, replicas interface {
	Watch(context.Context, func([]serving.Endpoint)) error
}) error {
	return replicas.Watch(ctx, func(list []serving.Endpoint) { v.replicas.Store(&list) })
}

// Learned implements web.System.
func (v *view) Learned(ctx context.Context, app, user, about string) (*serving.Learning, error) {
	return gateway.Learned(ctx, v.states, v.catalog(), app, user, about)
}

// Status implements web.System.
func (v *view) Status() web.Status {
	s := web.Status{Gateway: v.gateway, Catalog: v.catalog()}
	for _, e := range *v.replicas.Load() {
		r := web.Replica{Name: e.Replica, State: "starting"}
		if e.Ready {
			r.State = "ready"
		}
		for _, id := range e.Models {
			r.Name = id.String() + " " + e.Replica
		}
		s.Replicas = append(s.Replicas, r)
	}
	slices.SortFunc(s.Replicas, func(a, b web.Replica) int { return cmp.Compare(a.Name, b.Name) })
	return s
}
