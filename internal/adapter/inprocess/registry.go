// Package inprocess holds the local-mode twins of what a cluster's servers do.
package inprocess

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/topsail-serving/topsail/serving"
)

// Registry knows the replicas of this process. It is the twin of Consul.
type Registry struct {
	mu        sync.Mutex // guards the following
	endpoints map[string]serving.Endpoint
	changed   chan struct{} // closed at the next change
}

// NewRegistry knows no replica.
func NewRegistry() *Registry {
	return &Registry{endpoints: map[string]serving.Endpoint{}, changed: make(chan struct{})}
}

// Put makes a replica known, or changes where it is.
func (r *Registry) Put(e serving.Endpoint) {
	r.change(func() { r.endpoints[e.Replica] = e })
}

// Remove forgets a replica.
func (r *Registry) Remove(replica string) {
	r.change(func() { delete(r.endpoints, replica) })
}

func (r *Registry) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Watch calls update with all replicas by name, at once and after each change,
// until ctx ends.
func (r *Registry) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	for {
		r.mu.Lock()
		changed := r.changed
		var list []serving.Endpoint
		for _, name := range slices.Sorted(maps.Keys(r.endpoints)) {
			list = append(list, r.endpoints[name])
		}
		r.mu.Unlock()
		update(list)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
