// Package local is the local mode: gateway, management and one sidecar per replica
// in one process, model containers as child processes, and state in a folder.
package local

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"topsail/cmd/topsail/config"
	"topsail/gateway"
	"topsail/gateway/httpapi"
	"topsail/internal/filestore"
	"topsail/internal/local"
	"topsail/internal/obs"
	"topsail/serving"
	"topsail/sidecar"
	"topsail/web"
)

// Options are what the command line says beside the configuration.
type Options struct {
	Guard []string  // the command that guards child processes
	Watch bool      // restart models when their source changes
	Out   io.Writer // gets the greeting
	Log   *slog.Logger
}

// Run serves until ctx ends, then drains and stops everything it started.
func Run(ctx context.Context, cfg *config.Config, opt Options) error {
	listeners, err := listen(cfg)
	if err != nil {
		return err
	}
	defer listeners.close()
	store, err := filestore.Open(cfg.DataDir, opt.Log)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := merge(ctx, store, cfg, opt.Log); err != nil {
		return err
	}
	metrics, registry := obs.NewRegistry(), local.NewRegistry()
	edge := gateway.New(ctx, gateway.Config{
		Name: "local", Catalog: store, Resolver: registry, QueryIDs: store,
		CacheBytes: int64(cfg.Gateway.CacheBytes), HTTP: httpConfig(cfg), Metrics: metrics, Log: opt.Log,
	})
	fleet := &fleet{
		dataDir: cfg.DataDir, guard: opt.Guard, watch: opt.Watch, registry: registry,
		metrics: sidecar.NewMetrics(metrics), log: opt.Log, members: map[string]*member{},
	}
	view := &view{store: store, gateway: edge, fleet: fleet, addr: listeners.gateway.Addr().String()}

	// The gateway goes first, so that it answers what it has with replicas that
	// still run; then the replicas stop, then the rest.
	fleetCtx, stopFleet := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFleet()
	rest, stopRest := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRest()
	var all errgroup.Group
	all.Go(func() error { defer stopFleet(); return edge.Run(ctx, listeners.gateway) })
	all.Go(func() error { defer stopRest(); return ended(fleetCtx, fleet.run(fleetCtx, store)) })
	all.Go(func() error { return obs.ServeOps(rest, listeners.ops, metrics, view.ready) })
	all.Go(func() error { return obs.ServeHTTP(rest, listeners.web, web.Handler(view)) })
	all.Go(func() error { greet(ctx, opt.Out, view, listeners); return nil })
	return all.Wait()
}

// ended leaves out the error that the context's own end is.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func httpConfig(cfg *config.Config) httpapi.Config {
	return httpapi.Config{
		MaxBodyBytes:   cfg.Gateway.MaxBodyBytes,
		MaxBatch:       cfg.Gateway.MaxBatch,
		MaxConnections: cfg.Gateway.MaxConnections,
		DrainTimeout:   cfg.Gateway.DrainTimeout,
	}
}

// merge brings the file's objects into the store and says what that changed.
func merge(ctx context.Context, store *filestore.Store, cfg *config.Config, log *slog.Logger) error {
	apps, versions := make([]serving.App, len(cfg.Apps)), make([]serving.Version, len(cfg.Versions))
	for i, a := range cfg.Apps {
		apps[i] = *a
	}
	for i, v := range cfg.Versions {
		versions[i] = *v
	}
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
type listeners struct{ gateway, web, ops net.Listener }

func listen(cfg *config.Config) (*listeners, error) {
	l := &listeners{}
	for _, one := range []struct {
		into *net.Listener
		name string
		addr string
	}{{&l.gateway, "gateway", cfg.Gateway.Addr}, {&l.web, "web", cfg.Web.Addr}, {&l.ops, "ops", cfg.Ops.Addr}} {
		ln, err := net.Listen("tcp", one.addr)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("cannot listen on %s.addr: %w; stop what uses it, or set another address with --%s-addr", one.name, err, one.name)
		}
		*one.into = ln
	}
	return l, nil
}

func (l *listeners) close() {
	for _, ln := range []net.Listener{l.gateway, l.web, l.ops} {
		if ln != nil {
			ln.Close()
		}
	}
}
