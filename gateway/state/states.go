package state

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// Store holds the states of all gateways.
type Store interface {
	// LoadState reads a state and its revision; nil and 0: there is none.
	LoadState(ctx context.Context, key serving.StateKey) (text []byte, revision uint64, err error)
	// SwapState stores a state if the revision is still the one that was read, and
	// else returns serving.ErrStateConflict. A revision is never used again.
	SwapState(ctx context.Context, key serving.StateKey, revision uint64, text []byte) (uint64, error)
	// SetStateAside puts what is stored under another name, which it returns, if the
	// revision is still this one; LoadState then finds none.
	SetStateAside(ctx context.Context, key serving.StateKey, revision uint64, why string) (as string, err error)
}

// States are the states that a gateway uses. All methods may be called concurrently.
type States struct {
	store   Store
	log     *slog.Logger
	metrics *metrics
	epoch   time.Time
	entries *otter.Cache[serving.StateKey, *entry]

	loads       chan *entry // not known yet
	refreshes   chan *entry // known, and due
	unreachable atomic.Bool // the last reading failed

	commits chan *entry   // with jobs
	waiting atomic.Int64  // jobs
	stopped chan struct{} // closed when Run has returned
}

const (
	maxBytes   = 256 << 20 // of states in memory, by entry.weight
	maxLoads   = 1024      // states that wait to be read
	maxWaiting = 1 << 14   // jobs that wait to be committed
	loaders    = 4         // readings at a time, for states that are not known, and again for those that are
	committers = 16        // states that are changed at a time
)

// New prepares; Run has to run for anything to be read or learned. It registers its
// metrics.
func New(store Store, log *slog.Logger, r *obs.Registry) *States {
	s := &States{
		store: store, log: log, epoch: time.Now(),
		entries: otter.Must(&otter.Options[serving.StateKey, *entry]{
			MaximumWeight: maxBytes,
			Weigher:       func(_ serving.StateKey, e *entry) uint32 { return e.weight() },
			Executor:      func(evict func()) { evict() }, // no goroutines of its own
		}),
		loads:     make(chan *entry, maxLoads),
		refreshes: make(chan *entry, maxLoads),
		commits:   make(chan *entry, maxWaiting), // an entry in it has a job, so that sending never blocks
		stopped:   make(chan struct{}),
	}
	s.metrics = newMetrics(r, s)
	return s
}

// Run reads and stores states until ctx ends, and returns why. Run it once. What is
// being trained when it ends fails.
func (s *States) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range loaders {
		workers.Go(func() { s.load(ctx, s.loads) })
		workers.Go(func() { s.load(ctx, s.refreshes) })
	}
	for range committers {
		workers.Go(func() { s.commit(ctx) })
	}
	workers.Wait()
	close(s.stopped)
	return context.Cause(ctx)
}

// Get is the state for a query of a user in a context, each of which may be empty. It
// never waits, and has an entry for each of the app's models. The state is shared and
// must not be changed.
func (s *States) Get(a *App, user, context string) *selection.State {
	now := s.now()
	for key, ok := a.key(user, context), true; ok; key, ok = parent(key) {
		e := s.entry(key)
		s.schedule(e, now)
		if state := s.fitted(e, a); state != nil {
			return state
		}
	}
	return a.fresh
}

// fitted is the entry's state for the app as it is now, or nil.
func (s *States) fitted(e *entry, a *App) *selection.State {
	k := e.kept.Load()
	if k == nil || k.state == nil {
		return nil
	}
	if f := e.fitted.Load(); f != nil && f.from == k.state && f.app == a {
		return f.State
	}
	state, err := a.fit(k.state, false, time.Now())
	if err != nil {
		s.metrics.misfits.Inc()
		state = a.fresh
	}
	e.fitted.Store(&fitted{from: k.state, app: a, State: state})
	return state
}

func (s *States) entry(key serving.StateKey) *entry {
	if e, ok := s.entries.GetIfPresent(key); ok {
		return e
	}
	e, _ := s.entries.SetIfAbsent(key, &entry{key: key})
	return e
}

// keep notes what the store has.
func (s *States) keep(e *entry, k *kept) {
	old := e.kept.Swap(k)
	s.weigh(e, old, k)
}

// weigh tells the cache that the size of an entry has changed.
func (s *States) weigh(e *entry, old, k *kept) {
	if old == nil || old.bytes != k.bytes {
		s.entries.Set(e.key, e)
	}
}

func (s *States) now() int64 { return int64(time.Since(s.epoch)) }
