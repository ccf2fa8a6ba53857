// Package local is the local mode: gateway, management and one sidecar per replica
// in one process, model containers as child processes, and state in a folder.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/manage"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/cmd/topsail/services"
	"github.com/topsail-serving/topsail/cmd/topsail/streams"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/scheduler"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/sidecar"
	"github.com/topsail-serving/topsail/web/traffic"
)

// Options are what the command line says beside the configuration.
type Options struct {
	Guard   []string  // the command that guards child processes
	Runtime []string  // the command that runs a bundle
	Watch   bool      // restart models when their source changes
	Recover bool      // go on from the last good copy of the state, which is damaged or missing
	Out     io.Writer // gets the greeting
	Log     *slog.Logger
}

// bundleCacheBytes is how much is kept of the bundles that hosts load, in bytes.
const bundleCacheBytes = 4 << 30

// Run serves until ctx ends, then drains and stops everything it started.
func Run(ctx context.Context, cfg *config.Config, opt Options) error {
	base := role.New(cfg, opt.Log)
	defer base.Close()
	listeners, err := listen(base)
	if err != nil {
		return err
	}
	if opt.Recover {
		if err := filestore.Recover(ctx, cfg.DataDir, opt.Log); err != nil {
			return err
		}
	}
	store, err := filestore.Open(cfg.DataDir, opt.Log)
	if err != nil {
		return err
	}
	defer store.Close()
	storeMetrics(base.Metrics, store)
	if err := merge(ctx, store, cfg, opt.Log); err != nil {
		return err
	}
	http, err := base.HTTP()
	if err != nil {
		return err
	}
	folder, err := manage.Folder(cfg)
	if err != nil {
		return err
	}
	bundles, err := manage.Bundles(cfg, folder, nil)
	if err != nil {
		return err
	}
	registry, own := inprocess.NewRegistry(), new(rpc.Local)
	demands, wakes, asked, served := inprocess.NewDemand(), inprocess.NewWakes(), demand.NewMeter(), demand.NewMeter()
	edge := gateway.New(ctx, gateway.Config{
		Name: "local", Catalog: store, Resolver: registry, QueryIDs: store, Waker: wakes, States: store, Records: inprocess.NewRecords(), Usage: store, Demand: asked, Dial: own.Dial,
		CacheBytes: int64(cfg.Gateway.CacheBytes), ExposeModels: cfg.Gateway.ExposeModels, HTTP: http, GRPC: base.GRPC(), GRPCListener: listeners.grpc, Metrics: base.Metrics, Log: opt.Log,
	})
	streaming, err := streams.Open(base, streams.Options{
		Name: role.Name(cfg.Streaming.Name), Scorer: edge, Demand: edge, Catalog: store, API: base.Scheme() + listeners.web.Addr().String(),
	})
	if err != nil {
		return err
	}
	fleet := newFleet(store.Catalog)
	fleet.dataDir, fleet.guard, fleet.watch = cfg.DataDir, opt.Guard, opt.Watch
	fleet.runtime, fleet.bundles = append(opt.Runtime, "--work", filepath.Join(cfg.DataDir, "runtimes")), folder.Path
	if fleet.bundleCache, err = openBundleCache(cfg.DataDir, folder.Path); err != nil {
		return err
	}
	fleet.renew = func(ctx context.Context, old serving.Definition) error {
		_, err := store.Apply(ctx, catalog.Signed{Change: catalog.Renew{Old: old}, By: serving.Author{Who: "watch"}}, 0)
		return err
	}
	fleet.registry, fleet.local, fleet.metrics, fleet.demand, fleet.log = registry, own, sidecar.NewMetrics(base.Metrics), served, opt.Log
	calls := services.New(services.Config{Catalog: store, Find: services.InConsul(nil, opt.Log), Registry: registry, Metrics: fleet.metrics, Demand: served, Local: own, Log: opt.Log})
	view := &view{store: store, gateway: edge, fleet: fleet, services: calls, usage: &usage{fleet: fleet}, addr: listeners.gateway.Addr().String()}
	decisions := inprocess.NewDecisions()
	scheduler := scheduler.New(scheduler.Config{
		Name: "local", Catalog: unfenced{store}, Fleet: fleet, Demand: demands, Replicas: registry, Wakes: wakes,
		Journals: []scheduler.Journal{decisions}, DryRun: cfg.Scheduler.DryRun, Metrics: base.Metrics, Log: opt.Log,
	})
	collector := traffic.New(traffic.Config{Keeper: traffic.File(filepath.Join(cfg.DataDir, "traffic")), Log: opt.Log, Targets: func() []traffic.Target {
		return []traffic.Target{{Role: traffic.Local, Name: "local", Source: traffic.Process{Registry: base.Metrics}}}
	}})
	view.traffic, view.bundles, view.started = collector, bundles, time.Now()
	manage.RoomMetrics(base.Metrics, bundles)
	system, err := view.system(base, decisions)
	if err != nil {
		return err
	}
	side, err := manage.New(base, system, bundles)
	if err != nil {
		return err
	}

	health := obs.Health{Ready: view.ready, Conditions: func() error {
		return errors.Join(store.Condition(), bundles.Condition(), manage.Missing(context.WithoutCancel(ctx), store.Catalog(), bundles), edge.Conditions(), streaming.Ready(), view.conditions())
	}}
	// The gateway answers what it has with replicas that still run, and the scheduler starts none while they stop.
	return phase.Run(ctx,
		phase.Phase{streaming.Run, greet(opt.Out, view, base.Scheme(), listeners)},
		phase.Phase{func(ctx context.Context) error { return edge.Run(ctx, listeners.gateway) }},
		phase.Phase{func(ctx context.Context) error { return scheduler.Run(ctx, always{}) }},
		phase.Phase{fleet.Run, calls.Run},
		phase.Phase{
			report("gateway", asked, demands), report("sidecar", served, demands),
			base.ServeOps(listeners.ops, health, streaming.Page()), base.ServeWeb(listeners.web, side), side.Run,
			store.KeepCopies, view.usage.follow, collector.Run,
		},
	)
}

// storeMetrics shows how the state is.
func storeMetrics(metrics *obs.Registry, store *filestore.Store) {
	is := func(so bool) float64 {
		if so {
			return 1
		}
		return 0
	}
	metrics.GaugeFunc("topsail_store_unwritable", "1 from when a change or feedback cannot be written, for lack of disk space or permission, until one is.", func() float64 { return is(!store.Writable()) })
	metrics.GaugeFunc("topsail_store_damaged", "1 if a part of the state was found damaged since the start.", func() float64 { return is(store.Damaged()) })
}

// report counts demand second by second.
func report(role string, meter *demand.Meter, to *inprocess.Demand) phase.Job {
	reporter := demand.Reporter{Source: serving.DemandSource{Role: role, Name: "local"}, Meter: meter, Sink: to}
	return func(ctx context.Context) error { reporter.Run(ctx); return nil }
}

// unfenced is the catalog of the only scheduler there is.
type unfenced struct{ *filestore.Store }

// ApplyFenced implements scheduler.Catalog.
func (u unfenced) ApplyFenced(ctx context.Context, change catalog.Change, _ uint64) (*serving.Catalog, error) {
	return u.Apply(ctx, change, 0)
}

// always is the term of the only scheduler there is.
type always struct{}

func (always) Valid() bool { return true }

func (always) Fence() uint64 { return 1 }

// merge brings the file's objects into the store and says what that changed. Where there
// is no file, what earlier ones brought in stays.
func merge(ctx context.Context, store *filestore.Store, cfg *config.Config, log *slog.Logger) error {
	if cfg.File == "" {
		return nil
	}
	apps, versions := cfg.Objects()
	report, err := store.MergeFile(ctx, apps, versions, cfg.Current)
	if err != nil {
		return fmt.Errorf("cannot merge %s into the store: %w", cfg.File, err)
	}
	for _, note := range report {
		log.Log(ctx, note.Level, note.Text)
	}
	return nil
}

// listeners are the addresses that local mode serves on, all taken before
// anything is started.
type listeners struct{ gateway, grpc, web, ops net.Listener } // grpc may be nil

func listen(base *role.Base) (*listeners, error) {
	l := &listeners{}
	for _, one := range []struct {
		into   *net.Listener
		listen func() (net.Listener, error)
	}{{&l.gateway, base.ListenGateway}, {&l.grpc, base.ListenGRPC}, {&l.web, base.ListenWeb}, {&l.ops, base.ListenOps}} {
		var err error
		if *one.into, err = one.listen(); err != nil {
			return nil, err
		}
	}
	return l, nil
}
