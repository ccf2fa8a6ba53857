// Package route knows which replicas serve which model version, keeps connections
// to them, and picks one for each question.
package route

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"topsail/rpc"
	"topsail/serving"
)

// Target is one model version on one replica.
type Target struct {
	replica *replica
	model   uint32 // its id on the connection
}

// Replica is the name of the target's replica.
func (t *Target) Replica() string { return t.replica.endpoint.Replica }

// Ask sends one input; to gets the answer, perhaps before Ask returns. After a
// failure to hears nothing. The number is for Cancel.
func (t *Target) Ask(to Receiver, a *rpc.Ask, in serving.Input) (uint64, *serving.Failure) {
	return t.replica.ask(t, to, a, in)
}

// Cancel says that nobody needs the answer to a question any more; it may come
// all the same.
func (t *Target) Cancel(question uint64) { t.replica.cancel(question) }

// Silent counts against a replica that has not answered for too long.
func (t *Target) Silent(now time.Time) { t.replica.fail(now) }

// Group is the ready replicas of one model version: an immutable snapshot.
type Group struct{ targets []*Target }

// Len is the number of ready replicas; a nil group has none.
func (g *Group) Len() int {
	if g == nil {
		return 0
	}
	return len(g.targets)
}

// Pick picks a replica other than not (which may be nil): of two at random the
// one where a query would wait less. Ejected replicas are left out, unless no
// other is left.
func (g *Group) Pick(not *Target, now time.Time) *Target {
	if g.Len() == 0 {
		return nil
	}
	if len(g.targets) == 1 {
		if only := g.targets[0]; not == nil || only.replica != not.replica {
			return only
		}
		return nil
	}
	a := g.sample(not, nil, now)
	if a == nil {
		return g.any(not)
	}
	if b := g.sample(not, a, now); b != nil && b.replica.cost(now) < a.replica.cost(now) {
		return b
	}
	return a
}

// sample picks a usable target at random, other than the two given.
func (g *Group) sample(not, nor *Target, now time.Time) *Target {
	start := rand.IntN(len(g.targets))
	for i := range g.targets {
		t := g.targets[(start+i)%len(g.targets)]
		if t.sameReplica(not) || t.sameReplica(nor) {
			continue
		}
		if t.replica.health.usable(now) {
			return t
		}
	}
	return nil
}

func (t *Target) sameReplica(other *Target) bool { return other != nil && t.replica == other.replica }

func (g *Group) any(not *Target) *Target {
	for _, i := range rand.Perm(len(g.targets)) {
		if t := g.targets[i]; !t.sameReplica(not) {
			return t
		}
	}
	return nil
}

// Table is the routing table.
type Table struct {
	name     string // of this gateway, for its peers
	resolver Resolver
	log      *slog.Logger

	groups  atomic.Pointer[map[serving.ModelID]*Group]
	mu      sync.Mutex // guards the following
	known   map[string]*running
	stopped bool

	retiring sync.WaitGroup // replicas that have left the list
}

// running is a replica with the goroutine that keeps its connection.
type running struct {
	*replica
	stop context.CancelFunc
	done chan struct{}
}

// NewTable makes an empty table; Run fills it.
func NewTable(name string, resolver Resolver, log *slog.Logger) *Table {
	t := &Table{name: name, resolver: resolver, log: log, known: map[string]*running{}}
	t.groups.Store(&map[serving.ModelID]*Group{})
	return t
}

// Group is the ready replicas of a model version; nil when there are none.
func (t *Table) Group(id serving.ModelID) *Group { return (*t.groups.Load())[id] }

// Run follows the resolver until ctx ends, then closes all connections.
func (t *Table) Run(ctx context.Context) error {
	err := t.resolver.Watch(ctx, func(list []serving.Endpoint) { t.update(ctx, list) })
	t.mu.Lock()
	t.stopped = true
	all := t.known
	t.known = map[string]*running{}
	t.mu.Unlock()
	for _, r := range all {
		r.stop()
		<-r.done
	}
	t.retiring.Wait()
	return err
}

// update starts and stops replicas, so that they are those of the list.
func (t *Table) update(ctx context.Context, list []serving.Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	wanted := map[string]bool{}
	for _, e := range list {
		wanted[e.Replica] = true
		old := t.known[e.Replica]
		if old != nil && old.endpoint.Addr == e.Addr && slices.Equal(old.endpoint.Token, e.Token) {
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

// retireWithin bounds the wait for the answers of a replica that has left the list.
const retireWithin = 30 * time.Second

// retire asks the replica nothing more, and stops it when its last answer is there.
func (r *running) retire(ctx context.Context) {
	defer r.stop()
	over := time.NewTimer(retireWithin)
	defer over.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for r.inFlight.Load() > 0 {
		select {
		case <-poll.C:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (t *Table) start(ctx context.Context, e serving.Endpoint) *running {
	ctx, stop := context.WithCancel(ctx)
	r := &running{replica: newReplica(e, t.name, t.log, t.rebuild), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.run(ctx)
	}()
	return r
}

// rebuild makes a new snapshot of who serves what.
func (t *Table) rebuild() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rebuildLocked()
}

func (t *Table) rebuildLocked() {
	groups := map[serving.ModelID]*Group{}
	for _, r := range t.known {
		r.mu.Lock()
		for _, a := range r.models {
			if a.State != rpc.StateReady || a.Stage != "" {
				continue
			}
			g := groups[a.Model]
			if g == nil {
				g = &Group{}
				groups[a.Model] = g
			}
			g.targets = append(g.targets, &Target{replica: r.replica, model: a.ID})
		}
		r.mu.Unlock()
	}
	t.groups.Store(&groups)
}

// Status is how a replica is doing, for people.
type Status struct {
	Replica   string
	Addr      string
	Connected bool
	Ejected   bool
	Models    []serving.ModelID // ready ones
	InFlight  int
	Wait      time.Duration // as last reported
	Latency   time.Duration // moving average
}

// Replicas lists how all replicas are doing, by name.
func (t *Table) Replicas() []Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Status
	for _, r := range t.known {
		list = append(list, r.status())
	}
	slices.SortFunc(list, func(a, b Status) int {
		if a.Replica < b.Replica {
			return -1
		}
		return 1
	})
	return list
}

func (r *replica) status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{
		Replica: r.endpoint.Replica, Addr: r.endpoint.Addr, Connected: r.conn != nil, Ejected: r.health.ejected(),
		InFlight: int(r.inFlight.Load()), Wait: time.Duration(r.wait.Load()), Latency: time.Duration(r.latency.Load()),
	}
	for _, a := range r.models {
		if a.State == rpc.StateReady {
			s.Models = append(s.Models, a.Model)
		}
	}
	return s
}
