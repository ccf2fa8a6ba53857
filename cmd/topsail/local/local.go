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
	"slices"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/manage"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/cmd/topsail/streams"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/traffic"
)

// Options are what the command line says beside the configuration.
type Options struct {
	Guard   []string  // the command that guards child processes
	Runtime []string  // the command that runs a bundle
	Watch   bool      // restart models when their source changes
	Recover bool      // go on from the last good copy of the state, which is damaged or missing
	Out     io.Writer // gets the greeting; of Open, what is being waited for, and may be nil
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
	p, err := openParts(ctx, base, listeners.grpc, opt)
	if err != nil {
		return err
	}
	defer p.store.Close()
	bundles, err := manage.Bundles(cfg, p.folder, nil)
	if err != nil {
		return err
	}
	streaming, err := streams.Open(base, streams.Options{
		Name: role.Name(cfg.Streaming.Name), Scorer: p.gateway, Demand: p.gateway, Catalog: p.store, API: base.Scheme() + listeners.web.Addr().String(),
	})
	if err != nil {
		return err
	}
	collector := traffic.New(traffic.Config{Keeper: traffic.File(filepath.Join(cfg.DataDir, "traffic")), Log: opt.Log, Targets: func() []traffic.Target {
		return []traffic.Target{{Role: traffic.Local, Name: "local", Source: traffic.Process{Registry: base.Metrics}}}
	}})
	view := p.view
	view.addr, view.traffic, view.bundles = listeners.gateway.Addr().String(), collector, bundles
	manage.RoomMetrics(base.Metrics, bundles)
	system, err := view.system(base, p.decisions)
	if err != nil {
		return err
	}
	side, err := manage.New(base, system, bundles)
	if err != nil {
		return err
	}

	health := obs.Health{Ready: view.ready, Conditions: func() error {
		return errors.Join(p.store.Condition(), bundles.Condition(), manage.Missing(context.WithoutCancel(ctx), p.store.Catalog(), bundles), p.gateway.Conditions(), streaming.Ready(), view.conditions())
	}}
	phases := p.phases(listeners.gateway,
		base.ServeOps(listeners.ops, health, streaming.Page()), base.ServeWeb(listeners.web, side), side.Run,
		view.usage.follow, collector.Run)
	return phase.Run(ctx, slices.Insert(phases, 0, phase.Phase{streaming.Run, greet(opt.Out, view, base.Scheme(), listeners)})...)
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
