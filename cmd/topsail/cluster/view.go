package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"topsail/gateway"
	"topsail/internal/redisstore"
	"topsail/serving"
	"topsail/web"
	"topsail/web/clipper"
)

// view is the cluster as the pages show it.
type view struct {
	gateway  string // an address to ask, for the pages' examples
	store    *redisstore.Store
	replicas atomic.Pointer[[]serving.Endpoint]
}

func newView(gateway string, store *redisstore.Store) *view {
	v := &view{gateway: gateway, store: store}
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
	return gateway.Learned(ctx, v.store, v.store.Catalog(), app, user, about)
}

// Store implements web.System.
func (v *view) Store() clipper.Store { return v.store }

// Status implements web.System.
func (v *view) Status() web.Status {
	s := web.Status{Gateway: v.gateway, Catalog: v.store.Catalog()}
	for _, e := range *v.replicas.Load() {
		r := web.Replica{Name: e.Replica, State: "starting"}
		if e.Ready {
			r.State, r.Models = "ready", e.Models
		}
		for _, id := range e.Models {
			r.Name = id.String() + " " + e.Replica
		}
		s.Replicas = append(s.Replicas, r)
	}
	slices.SortFunc(s.Replicas, func(a, b web.Replica) int { return cmp.Compare(a.Name, b.Name) })
	return s
}
