package local

import (
	"context"
	"net"
	"path/filepath"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/manage"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/cmd/topsail/services"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/scheduler"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/sidecar"
	"github.com/topsail-serving/topsail/web/artifact"
)

// parts are what answers queries: the state, the gateway, the replicas, and who starts them.
type parts struct {
	base      *role.Base
	store     *filestore.Store
	folder    *artifact.Folder // of bundles
	gateway   *gateway.Gateway
	fleet     *fleet
	services  *services.Services
	scheduler *scheduler.Scheduler
	decisions *inprocess.Decisions
	view      *view
	reports   phase.Phase // of demand
}

// openParts opens the state, which the caller closes, and starts nothing. A grpc that is not nil is where gRPC is served.
func openParts(ctx context.Context, base *role.Base, grpc net.Listener, opt Options) (*parts, error) {
	cfg, p := base.Config, &parts{base: base, decisions: inprocess.NewDecisions()}
	if opt.Recover {
		if err := filestore.Recover(ctx, cfg.DataDir, opt.Log); err != nil {
			return nil, err
		}
	}
	var err error
	if p.store, err = filestore.Open(cfg.DataDir, opt.Log); err != nil {
		return nil, err
	}
	storeMetrics(base.Metrics, p.store)
	if err = merge(ctx, p.store, cfg, opt.Log); err == nil {
		err = p.open(ctx, grpc, opt)
	}
	if err != nil {
		p.store.Close()
		return nil, err
	}
	return p, nil
}

// open makes the parts of a state.
func (p *parts) open(ctx context.Context, grpc net.Listener, opt Options) error {
	base, store := p.base, p.store
	cfg := base.Config
	http, err := base.HTTP()
	if err != nil {
		return err
	}
	if p.folder, err = manage.Folder(cfg); err != nil {
		return err
	}
	p.fleet = newFleet(store.Catalog)
	fleet := p.fleet
	if fleet.bundleCache, err = openBundleCache(cfg.DataDir, p.folder.Path); err != nil {
		return err
	}
	registry, own := inprocess.NewRegistry(), new(rpc.Local)
	demands, wakes, asked, served := inprocess.NewDemand(), inprocess.NewWakes(), demand.NewMeter(), demand.NewMeter()
	p.gateway = gateway.New(ctx, gateway.Config{
		Name: "local", Catalog: store, Resolver: registry, QueryIDs: store, Waker: wakes, States: store, Records: inprocess.NewRecords(), Usage: store, Demand: asked, Dial: own.Dial,
		CacheBytes: int64(cfg.Gateway.CacheBytes), ExposeModels: cfg.Gateway.ExposeModels, HTTP: http, GRPC: base.GRPC(), GRPCListener: grpc, Metrics: base.Metrics, Log: opt.Log,
	})
	fleet.dataDir, fleet.guard, fleet.watch = cfg.DataDir, opt.Guard, opt.Watch
	fleet.runtime, fleet.bundles = append(opt.Runtime, "--work", filepath.Join(cfg.DataDir, "runtimes")), p.folder.Path
	fleet.renew = func(ctx context.Context, old serving.Definition) error {
		_, err := store.Apply(ctx, catalog.Signed{Change: catalog.Renew{Old: old}, By: serving.Author{Who: "watch"}}, 0)
		return err
	}
	fleet.registry, fleet.local, fleet.metrics, fleet.demand, fleet.log = registry, own, sidecar.NewMetrics(base.Metrics), served, opt.Log
	p.services = services.New(services.Config{Catalog: store, Find: services.InConsul(nil, opt.Log), Registry: registry, Metrics: fleet.metrics, Demand: served, Local: own, Log: opt.Log})
	p.view = &view{store: store, gateway: p.gateway, fleet: fleet, services: p.services, usage: &usage{fleet: fleet}, started: time.Now()}
	p.scheduler = scheduler.New(scheduler.Config{
		Name: "local", Catalog: unfenced{store}, Fleet: fleet, Demand: demands, Replicas: registry, Wakes: wakes,
		Journals: []scheduler.Journal{p.decisions}, DryRun: cfg.Scheduler.DryRun, Metrics: base.Metrics, Log: opt.Log,
	})
	p.reports = phase.Phase{report("gateway", asked, demands), report("sidecar", served, demands)}
	return nil
}

// phases are all jobs of the parts, with others that end with the last of them. A nil listener is that of a gateway
// that serves no HTTP. The gateway answers what it has with replicas that still run, and the scheduler starts none
// while they stop.
func (p *parts) phases(ln net.Listener, beside ...phase.Job) []phase.Phase {
	last := append(phase.Phase{p.store.KeepCopies}, p.reports...)
	return []phase.Phase{
		{func(ctx context.Context) error { return p.gateway.Run(ctx, ln) }},
		{func(ctx context.Context) error { return p.scheduler.Run(ctx, always{}) }},
		{p.fleet.Run, p.services.Run},
		append(last, beside...),
	}
}
