package stream

import (
	"context"
	"slices"
	"sync"

	"github.com/topsail-serving/topsail/serving"
)

// Gate is closed while a stream is suspended. It knows what else operators said of the stream. Many
// goroutines use it.
type Gate struct {
	mu         sync.Mutex
	known      bool // whether the stream is suspended
	suspension *serving.Suspension
	changed    chan struct{}       // closed when that changes
	apps       map[string][]string // that records may name; it is not changed
}

// newGate makes a gate that is open, or where it has to hear first whether it is, closed.
func newGate(open bool) *Gate { return &Gate{known: open, changed: make(chan struct{})} }

// follow opens and closes the gate as the catalog has it, until ctx ends.
func (g *Gate) follow(ctx context.Context, catalog Catalog, name string) {
	// It ends with ctx, and fails with nothing else.
	_ = catalog.Watch(ctx, func(cat *serving.Catalog) {
		s := cat.Streams[name]
		if s == nil {
			s = &serving.Stream{}
		}
		g.setApps(s.Apps) // before records are taken
		g.set(s.Suspension)
	})
}

func (g *Gate) setApps(named map[string]string) {
	apps := make(map[string][]string, len(named))
	for name, text := range named {
		apps[name] = serving.SplitApps(text)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.apps = apps
}

func (g *Gate) set(s *serving.Suspension) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known && g.suspension == s {
		return
	}
	g.known, g.suspension = true, s
	close(g.changed)
	g.changed = make(chan struct{})
}

// Suspension is why the gate is closed, or nil.
func (g *Gate) Suspension() *serving.Suspension {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.suspension
}

// Apps are the apps that operators said are for records that name something.
func (g *Gate) Apps(named string) (apps []string, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	apps, known = g.apps[named]
	return apps, known
}

// Serves says whether an app is among those.
func (g *Gate) Serves(app string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, apps := range g.apps {
		if slices.Contains(apps, app) {
			return true
		}
	}
	return false
}

func (g *Gate) look() (open bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known && g.suspension == nil, g.changed
}

// Wait waits until the gate is open. It fails when ctx ends.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		open, changed := g.look()
		if open {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// While is a context that also ends when the gate closes; while it is closed, one that has
// ended.
func (g *Gate) While(ctx context.Context) (context.Context, context.CancelFunc) {
	during, cancel := context.WithCancel(ctx)
	open, changed := g.look()
	if !open {
		cancel()
		return during, cancel
	}
	go func() {
		defer cancel()
		for open {
			select {
			case <-changed:
				open, changed = g.look()
			case <-during.Done():
				return
			}
		}
	}()
	return during, cancel
}
