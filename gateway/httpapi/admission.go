package httpapi

import (
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// admission is what a catalog says of who may ask and how often, ready to be looked
// up. It is immutable but for its buckets and counters.
type admission struct {
	catalog *serving.Catalog // empty before there is one
	checks  bool             // there are keys, or one has to be shown
	apps    map[string]*gate
	keys    map[string]*bucket // by id, of those with a limit
	unknown *gate              // of all apps that there are not
}

// gate is what stands before one app.
type gate struct {
	limit   *bucket // nil: none
	refused refusedCounters
	large   *atomic.Int64 // what answers of the app take of the budget; 0: they are small
}

// Serve takes in a new catalog: its keys and limits hold from now on.
func (s *Server) Serve(cat *serving.Catalog) {
	s.serving.Lock()
	defer s.serving.Unlock()
	old, now := s.admission.Load(), time.Now()
	next := &admission{
		catalog: cat, checks: s.config.keysNeeded() || len(cat.Keys) > 0,
		apps: make(map[string]*gate, len(cat.Apps)), keys: map[string]*bucket{}, unknown: old.unknown,
	}
	for name, app := range cat.Apps {
		g := gate{}
		if before := old.apps[name]; before != nil {
			g = *before
		} else {
			g.refused, g.large = s.refused.of(name), &atomic.Int64{}
		}
		g.limit = fit(g.limit, app.Limit, now)
		next.apps[name] = &g
		next.checks = next.checks || app.RequireKey
	}
	for id, key := range cat.Keys {
		if b := fit(old.keys[id], key.Limit, now); b != nil {
			next.keys[id] = b
		}
	}
	s.admission.Store(next)
	for name := range old.apps {
		if next.apps[name] == nil {
			s.refused.forget(name)
		}
	}
}

// fit is the bucket of a limit: the one before if the limit is the same.
func fit(before *bucket, limit *serving.Limit, now time.Time) *bucket {
	switch {
	case limit == nil:
		return nil
	case before != nil && before.limit == *limit:
		return before
	}
	return newBucket(*limit, now)
}

// gate is what stands before an app, known or not.
func (a *admission) gate(app string) *gate {
	if g := a.apps[app]; g != nil {
		return g
	}
	return a.unknown
}
