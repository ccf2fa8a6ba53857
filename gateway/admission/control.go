package admission

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// Config says which keys there are besides those of the catalog.
type Config struct {
	Keys        *access.Keys  // one of which, or of the catalog's, a request must show; nil: there are none
	RequireKeys bool          // a request must show a key, also where there are no Keys: one of the catalog's
	Started     func() bool   // whether apps and keys are known yet; nil: they are
	Metrics     *obs.Registry // where refusals are counted
}

// keysNeeded says whether every request needs a key.
func (c *Config) keysNeeded() bool { return c.Keys != nil || c.RequireKeys }

// Control admits requests by the last catalog that it was given. It may be used concurrently.
type Control struct {
	config  Config
	refused refused
	serving sync.Mutex // serialises Serve
	rules   atomic.Pointer[rules]
}

// New is a Control without a catalog.
func New(config Config) *Control {
	c := &Control{config: config, refused: newRefused(config.Metrics)}
	c.rules.Store(&rules{catalog: &serving.Catalog{}, checks: config.keysNeeded(), unknown: &gate{refused: c.refused.of("")}})
	c.rules.Load().unknown.refused() // these begin at once: they belong to no app
	return c
}

// rules are what a catalog says of keys and limits, ready to be looked up. They are immutable but
// for their buckets and counters.
type rules struct {
	catalog *serving.Catalog // empty before there is one
	checks  bool             // there are keys, or one has to be shown
	apps    map[string]*gate
	keys    map[string]*bucket // by id, of those with a limit
	unknown *gate              // of all unknown apps
}

// gate is what stands before one app.
type gate struct {
	limit   *bucket // nil: none
	refused refusedCounters
	large   *atomic.Int64 // what answers of the app take of the budget; 0: they are small
}

// Started says whether apps and keys are known yet.
func (c *Control) Started() bool { return c.config.Started == nil || c.config.Started() }

// Catalog is the last one; it is empty before the first.
func (c *Control) Catalog() *serving.Catalog { return c.rules.Load().catalog }

// AllNeedKeys says whether every request needs a key.
func (c *Control) AllNeedKeys() bool { return c.config.keysNeeded() }

// SomeNeedKeys says whether there are keys, or apps that need one.
func (c *Control) SomeNeedKeys() bool { return c.rules.Load().checks }

// Serve takes in a new catalog: its keys and limits hold from now on.
func (c *Control) Serve(cat *serving.Catalog) {
	c.serving.Lock()
	defer c.serving.Unlock()
	old, now := c.rules.Load(), time.Now()
	next := &rules{
		catalog: cat, checks: c.config.keysNeeded() || len(cat.Keys) > 0,
		apps: make(map[string]*gate, len(cat.Apps)), keys: map[string]*bucket{}, unknown: old.unknown,
	}
	for name, app := range cat.Apps {
		g := gate{}
		if before := old.apps[name]; before != nil {
			g = *before
		} else {
			g.refused, g.large = c.refused.of(name), &atomic.Int64{}
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
	c.rules.Store(next)
	for name := range old.apps {
		if next.apps[name] == nil {
			c.refused.forget(name)
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
func (r *rules) gate(app string) *gate {
	if g := r.apps[app]; g != nil {
		return g
	}
	return r.unknown
}

// Count counts a request that the caller refuses. It counts for the app if it is known, and else, or
// if it is empty, for all others together.
func (c *Control) Count(app string, why Reason) { c.rules.Load().gate(app).refused()[why].Inc() }

// AnswerSize is about how many bytes answers of an app take on their way, if they are large; 0: they
// are small, or the app is unknown.
func (c *Control) AnswerSize(app string) int {
	if g := c.rules.Load().apps[app]; g != nil {
		return int(g.large.Load())
	}
	return 0
}

// LearnAnswerSize takes in how many bytes the largest answer of a request took: at once what is more,
// and after some answers what is less. Below small it is nothing.
func (c *Control) LearnAnswerSize(app string, size, small int) {
	g := c.rules.Load().apps[app]
	if g == nil {
		return
	}
	before := g.large.Load()
	now := max(int64(size), before-before/8)
	if now <= int64(small) {
		now = 0
	}
	if now != before {
		g.large.Store(now)
	}
}
