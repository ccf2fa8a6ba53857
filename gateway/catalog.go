package gateway

import (
	"context"
	"sync"

	"github.com/topsail-serving/topsail/serving"
)

// revisions is the revision of the catalog by which a gateway answers.
type revisions struct {
	mu    sync.Mutex
	known bool   // there was a catalog
	last  uint64 // its revision
	next  chan struct{}
}

func newRevisions() *revisions { return &revisions{next: make(chan struct{})} }

// set notes a newer revision.
func (r *revisions) set(revision uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.last = true, revision
	close(r.next)
	r.next = make(chan struct{})
}

// await returns when there is the revision or a later one, or ctx ends.
func (r *revisions) await(ctx context.Context, revision uint64) {
	for {
		r.mu.Lock()
		done, next := r.known && r.last >= revision, r.next
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// update takes in a new catalog. One that cannot be used leaves the last in place, but
// for its keys and limits, since a key that was deleted must not go on.
func (g *Gateway) update(cat *serving.Catalog) {
	if g.cfg.ExposeModels {
		cat = exposed(cat)
	}
	g.warn(cat)
	g.http.Serve(cat)
	if err := g.SetCatalog(cat); err != nil {
		g.cfg.Log.Error("cannot use the new catalog; the last one stays in use", "revision", cat.Revision, "err", err)
		return
	}
	if g.joiner != nil {
		g.joiner.Serve(cat)
	}
	g.revisions.set(cat.Revision)
}

// warn says once which apps have names that became reserved.
func (g *Gateway) warn(cat *serving.Catalog) {
	for name := range cat.Apps {
		if serving.NewlyReserved(name) && !g.warned[name] {
			g.warned[name] = true
			g.cfg.Log.Warn("the name of an app is reserved now: it goes on, but register it under another name, since paths of the gateway will begin with this one", "app", name)
		}
	}
}

// AwaitCatalog returns when the gateway answers by the catalog of a revision or a later one,
// or when ctx ends.
func (g *Gateway) AwaitCatalog(ctx context.Context, revision uint64) {
	g.revisions.await(ctx, revision)
}
