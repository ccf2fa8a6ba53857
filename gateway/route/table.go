// Package route knows which replicas serve which model version, keeps connections
// to them, and picks one for each question.
package route

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Table is the routing table.
type Table struct {
	// Dial reaches the address of a replica; TCP, unless it is changed before Run.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Changed, unless it is nil, is called after groups may have changed, by any
	// goroutine. It is set before Run, and must not block.
	Changed func()

	name     string // of this gateway, for its peers
	resolver Resolver
	log      *slog.Logger

	groups  atomic.Pointer[groups]
	mu      sync.Mutex // guards the following
	known   map[string]*running
	stopped bool

	retiring sync.WaitGroup // replicas that have left the list
}

// groups are an immutable snapshot of which replicas serve what.
type groups map[serving.Definition]*Group

// running is a replica with the goroutine that keeps its connection.
type running struct {
	*replica
	stop context.CancelFunc
	done chan struct{}
}

// NewTable makes an empty table; Run fills it.
func NewTable(name string, resolver Resolver, log *slog.Logger) *Table {
	t := &Table{Dial: dialTCP, name: name, resolver: resolver, log: log, known: map[string]*running{}}
	t.groups.Store(&groups{})
	return t
}

const dialWithin = 2 * time.Second

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialWithin}
	return dialer.DialContext(ctx, "tcp", addr)
}

// Group is the ready replicas that run a model version as it is defined; nil when there
// are none.
func (t *Table) Group(d serving.Definition) *Group { return (*t.groups.Load())[d] }

// Run follows the resolver until ctx ends, then closes all connections.
func (t *Table) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := t.resolver.Watch(ctx, func(list []serving.Endpoint) { t.update(ctx, list) })
	stop() // also when it was the resolver that ended
	t.mu.Lock()
	t.stopped = true
	all := t.known
	t.known = map[string]*running{}
	t.mu.Unlock()
	for _, r := range all {
		r.end()
	}
	t.retiring.Wait()
	return err
}

// update starts and stops replicas, so that they are those of the list.
func (t *Table) update(ctx context.Context, list []serving.Endpoint) {
	defer t.changed() // when it is unlocked
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	wanted := map[string]bool{}
	for _, e := range list {
		wanted[e.Replica] = true
		old := t.known[e.Replica]
		if old != nil && old.endpoint.Addr == e.Addr && old.keeps(e.Token) {
			continue
		}
		if old != nil {
			t.retiring.Go(func() { old.retire(ctx) })
		}
		t.known[e.Replica] = t.start(ctx, e)
	}
	for name, r := range t.known {
		if !wanted[name] {
			delete(t.known, name)
			t.retiring.Go(func() { r.retire(ctx) })
		}
	}
	t.rebuildLocked()
}

// retire asks the replica nothing more, and ends it when its last answer is there,
// or overdue.
func (r *running) retire(ctx context.Context) {
	defer r.end()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for r.load.all() > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *running) end() {
	r.stop()
	<-r.done
}

func (t *Table) start(ctx context.Context, e serving.Endpoint) *running {
	ctx, stop := context.WithCancel(ctx)
	r := &running{replica: newReplica(e, t.name, t.Dial, t.log, t.rebuild), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.run(ctx)
	}()
	return r
}

// rebuild makes a new snapshot of which replicas serve what.
func (t *Table) rebuild() {
	defer t.changed() // when it is unlocked
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rebuildLocked()
}

func (t *Table) changed() {
	if t.Changed != nil {
		t.Changed()
	}
}

func (t *Table) rebuildLocked() {
	next := make(groups, len(*t.groups.Load()))
	for _, r := range t.known {
		r.mu.Lock()
		for _, a := range r.models {
			if a.State != rpc.StateReady || a.Stage != "" {
				continue
			}
			d := a.Definition()
			g := next[d]
			if g == nil {
				g = &Group{}
				next[d] = g
			}
			g.targets = append(g.targets, &Target{replica: r.replica, model: a.ID})
		}
		r.mu.Unlock()
	}
	t.groups.Store(&next)
}
