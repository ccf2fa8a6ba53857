package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// Config is what a Scheduler needs.
type Config struct {
	Name     string // of this scheduler, for readers of its decisions
	Catalog  Catalog
	Fleet    Fleet
	Demand   Demand
	Replicas Replicas
	Wakes    Wakes         // nil: versions at zero are woken by their demand
	Hints    Hints         // nil: jobs are looked at once a second
	Journals []Journal     // each gets every decision that asks for a change
	DryRun   bool          // decide, and change nothing
	Metrics  *obs.Registry // nil: metrics are kept and shown nowhere
	Log      *slog.Logger  // nil: nothing is logged
}

// Scheduler decides while Run runs.
type Scheduler struct {
	cfg     Config
	metrics *metrics
	board   *board
}

// New makes a scheduler that does nothing yet.
func New(cfg Config) *Scheduler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = obs.NewRegistry()
	}
	b := newBoard()
	return &Scheduler{cfg: cfg, metrics: newMetrics(cfg.Metrics, b), board: b}
}

// Run leads for one term, until ctx ends, or with serving.ErrFenced when a keeper of
// state says that a later term has begun. It remembers nothing of a term before. One
// Run may run at a time.
func (s *Scheduler) Run(ctx context.Context, term Term) error {
	ctx, abdicate := context.WithCancelCause(ctx)
	defer abdicate(nil)
	s.board.begin(time.Now())
	defer s.board.end()
	journal := newJournal(s.cfg.Journals, s.metrics, abdicate, s.cfg.Log)
	l := newLoop(s, term, journal, time.Now())
	l.abdicate = abdicate

	var watchers, recorders sync.WaitGroup
	recorders.Go(func() { journal.run(ctx) })
	s.watch(ctx, &watchers, l.mail)
	l.run(ctx)
	watchers.Wait()
	journal.close()
	recorders.Wait()
	if err := context.Cause(ctx); errors.Is(err, serving.ErrFenced) {
		return err
	}
	return nil
}

// watch follows everything that calls back.
func (s *Scheduler) watch(ctx context.Context, wg *sync.WaitGroup, to *mailbox) {
	follow := func(what string, watch func(context.Context) error) {
		wg.Go(func() { s.follow(ctx, what, watch) })
	}
	follow("the catalog", func(ctx context.Context) error { return s.cfg.Catalog.Watch(ctx, to.putCatalog) })
	follow("the replicas", func(ctx context.Context) error { return s.cfg.Replicas.Watch(ctx, to.putReplicas) })
	if w := s.cfg.Wakes; w != nil {
		follow("wakes", func(ctx context.Context) error { return w.Wakes(ctx, to.putWake) })
	}
	if h := s.cfg.Hints; h != nil {
		follow("changes of jobs", func(ctx context.Context) error { return h.Changes(ctx, to.putHint) })
	}
}

// follow watches again whenever that ends before ctx does.
func (s *Scheduler) follow(ctx context.Context, what string, watch func(context.Context) error) {
	wait := retry.Backoff{First: time.Second, Most: 10 * time.Second}
	for ctx.Err() == nil {
		err := watch(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := wait.Next()
		s.cfg.Log.Warn("cannot watch "+what+"; what was seen last stays in use", "err", err, "retry_in", pause)
		retry.Sleep(ctx, pause)
	}
}

// Status says how every version is doing, sorted by name; nothing between terms.
func (s *Scheduler) Status() []Status { return s.board.all() }

// Explain is the Status of one version.
func (s *Scheduler) Explain(id serving.ModelID) (Status, bool) { return s.board.get(id) }
