// Package gateway is the edge: it answers the queries of clients, over HTTP or
// called by a Go program that embeds it.
//
// A Gateway owns the prediction cache, the routing table with its connections to
// replicas, the dispatcher that asks them, and the predictor that ties them together. What it serves it learns
// from a catalog and a resolver, whose last good snapshots stay in use.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/feedback"
	"github.com/topsail-serving/topsail/gateway/grpcapi"
	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/gateway/inspect"
	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/gateway/usage"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/serving"
)

// Catalog knows what is registered.
type Catalog interface {
	// Watch calls update with whole snapshots, at once and then whenever it
	// changes, until ctx ends.
	Watch(ctx context.Context, update func(*serving.Catalog)) error
}

// Config is what a gateway needs.
type Config struct {
	Name       string // of this gateway, for its peers
	Catalog    Catalog
	Resolver   route.Resolver
	QueryIDs   predict.Leaser // nil: ids are drawn at random blocks
	CacheBytes int64
	// ExposeModels has models that no app links asked by their own names.
	ExposeModels bool
	Demand       *demand.Meter  // nil: demand is not counted
	Waker        dispatch.Waker // nil: queries without a replica wait until one comes
	// States and Records keep what policies learn and what feedback will be about;
	// without either, nothing is learned and no feedback is taken.
	States  state.Store
	Records feedback.Store
	Usage   usage.Store // nil: the usage of models and apps is not kept
	HTTP    httpapi.Config
	GRPC    grpcapi.Config
	// GRPCListener is where gRPC is served while Run runs, which closes it; nil: nowhere.
	GRPCListener net.Listener
	// Dial reaches the address of a replica; nil is TCP.
	Dial    func(ctx context.Context, addr string) (net.Conn, error)
	Metrics *obs.Registry // nil: metrics are kept and shown nowhere
	Log     *slog.Logger  // nil: nothing is logged
}

// Gateway answers queries while Run runs.
type Gateway struct {
	*predict.Predictor
	cfg      Config
	cache    *cache.Cache
	table    *route.Table
	dispatch *dispatch.Dispatcher
	ids      *predict.IDs
	http     *httpapi.Server
	grpc     *grpcapi.Server
	page     *inspect.Page
	joiner   *feedback.Joiner // nil, as are the next: no feedback is taken
	states   *state.States
	recorder *feedback.Recorder
	reporter *usage.Reporter // nil: without Usage

	revisions *revisions
	warned    map[string]bool // apps with reserved names; of the watch
}

// startWithin is how long clients wait for the first catalog before they get an error.
const startWithin = time.Second

// New makes a gateway; Run starts it.
func New(ctx context.Context, cfg Config) *Gateway {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = obs.NewRegistry()
	}
	g := &Gateway{
		cfg:   cfg,
		cache: cache.New(cfg.CacheBytes),
		table: route.NewTable(cfg.Name, cfg.Resolver, cfg.Log),
		ids:   predict.NewIDs(ctx, cfg.QueryIDs, cfg.Log),

		revisions: newRevisions(), warned: map[string]bool{},
	}
	g.dispatch = dispatch.New(g.table, cfg.Metrics)
	if cfg.Dial != nil {
		g.table.Dial = cfg.Dial
	}
	g.learn()
	cfg.GRPC.Metrics = cfg.Metrics
	var updater grpcapi.Updater
	if g.joiner != nil {
		updater = g.joiner
	}
	g.grpc = grpcapi.New(cfg.GRPC, g.Predictor, updater, g.http.Admission(), cfg.Log)
	g.Demand = cfg.Demand
	if cfg.Usage != nil {
		g.reporter = usage.NewReporter(g.TakeUsage, cfg.Usage, cfg.Log)
	}
	g.addGauges(cfg.Metrics)
	return g
}

// learn makes the predictor, and what learns if there is where to keep it.
func (g *Gateway) learn() {
	cfg := &g.cfg
	metrics := predict.NewMetrics(cfg.Metrics)
	g.page = inspect.New(metrics.Traffic)
	cfg.HTTP.Metrics, cfg.HTTP.Inspect = cfg.Metrics, g.page.Append
	if cfg.States == nil || cfg.Records == nil {
		g.Predictor = predict.New(g.cache, g.dispatch, g.ids, untaught{}, metrics)
		g.http = httpapi.New(cfg.HTTP, g.Predictor, nil, cfg.Log)
		return
	}
	g.states = state.New(cfg.States, cfg.Log, cfg.Metrics)
	g.recorder = feedback.NewRecorder(cfg.Records, cfg.Log, cfg.Metrics)
	g.Predictor = predict.New(g.cache, g.dispatch, g.ids, g.states, metrics)
	g.Predictor.Records = g.recorder
	g.joiner = feedback.NewJoiner(g.Predictor, g.states, g.recorder, cfg.Log, cfg.Metrics)
	g.http = httpapi.New(cfg.HTTP, g.Predictor, g.joiner, cfg.Log)
}

// Feedback learns from what is known of answers, as serving.Feedback says. It fails as
// feedback.Joiner does, and with errUntaught in a gateway that keeps nothing.
func (g *Gateway) Feedback(ctx context.Context, list []serving.Feedback) ([]serving.Learned, error) {
	if g.joiner == nil {
		return nil, errUntaught
	}
	return g.joiner.Feedback(ctx, list)
}

var errUntaught = errors.New("this gateway accepts no feedback: it was created without States and Records")

// untaught gives policies the state before any feedback.
type untaught struct{}

// Get implements predict.States.
func (untaught) Get(a *state.App, _, _ string) *selection.State { return a.Fresh() }

// Replicas lists how the replicas are doing, as this gateway sees them.
func (g *Gateway) Replicas() []route.Status { return g.table.Replicas() }

// Run serves until ctx ends, then drains. A nil listener means that only calls in
// process are served.
func (g *Gateway) Run(ctx context.Context, ln net.Listener) error {
	defer g.cache.Close()
	defer g.ids.Close()
	// The last report comes when all queries are answered; connections to replicas outlive both.
	return phase.Run(ctx, g.listening(ln), g.reporting(), g.routing())
}

// listening serves clients.
func (g *Gateway) listening(ln net.Listener) (jobs phase.Phase) {
	if ln != nil {
		jobs = append(jobs, g.informed(func(ctx context.Context) error { return g.http.Run(ctx, ln) }))
	}
	if g.cfg.GRPCListener != nil {
		jobs = append(jobs, g.informed(func(ctx context.Context) error { return g.grpc.Run(ctx, g.cfg.GRPCListener) }))
	}
	return jobs
}

// informed is a job that begins when there is a catalog, or cannot be one for a time.
func (g *Gateway) informed(job phase.Job) phase.Job {
	return func(ctx context.Context) error {
		starting, started := context.WithTimeout(ctx, startWithin)
		defer started()
		g.AwaitCatalog(starting, 0)
		return job(ctx)
	}
}

// reporting reports usage.
func (g *Gateway) reporting() phase.Phase {
	if g.reporter == nil {
		return nil
	}
	return phase.Phase{g.reporter.Run}
}

// routing is what queries need to be answered.
func (g *Gateway) routing() phase.Phase {
	jobs := phase.Phase{
		g.table.Run, g.page.Run,
		func(ctx context.Context) error { return g.cfg.Catalog.Watch(ctx, g.update) },
	}
	if g.cfg.Waker != nil {
		jobs = append(jobs, func(ctx context.Context) error { return g.dispatch.Run(ctx, g.cfg.Waker, g.cfg.Log) })
	}
	if g.states != nil {
		jobs = append(jobs, g.states.Run, g.recorder.Run,
			func(ctx context.Context) error { return g.Predictor.Observe(ctx, g.states, g.cfg.Log) })
	}
	return jobs
}
