package manage

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/release"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/artifact"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/backup"
	"github.com/topsail-serving/topsail/web/clipper"
	"github.com/topsail-serving/topsail/web/inflight"
	"github.com/topsail-serving/topsail/web/traffic"
)

// System is what the management side manages.
type System struct {
	Mode      string // "local" or "cluster"
	Store     Store
	Replicas  api.Replicas
	Endpoints func() []serving.Endpoint // of the replicas
	Scheduler Scheduler
	Gateway   func() string // the URL of one; empty while none is known
	Cluster   func(ctx context.Context) api.Cluster
	SetCount  func(ctx context.Context, role string, count int, reason string) error // nil in local mode
	Job       func(ctx context.Context, id serving.ModelID, secrets bool) (api.Job, error)
	Traffic   *traffic.Collector
	HTTP      *http.Client // towards gateways
}

// Store keeps all that is managed.
type Store interface {
	api.Store
	api.Audit
	api.Counts
	state.Store
	gateway.StateStore
	backup.Store
}

// Side is the management side.
type Side struct {
	http.Handler
	api *api.API
}

// Run waits until ctx ends, and then ends the answers that go on.
func (s *Side) Run(ctx context.Context) error { return s.api.Run(ctx) }

// New puts the management side together.
func New(base *role.Base, s System, bundles *artifact.Store) (*Side, error) {
	cfg := base.Config
	keys, err := base.Keys(cfg.Web.KeysFile)
	if err != nil {
		return nil, err
	}
	gatewayKey, err := base.Token(cfg.Web.GatewayKeyFile)
	if err != nil {
		return nil, err
	}
	hosts := append(access.HostOf(cfg.Web.Addr), cfg.Web.Hosts...)
	guard := auth.New(auth.Config{Keys: keys, Catalog: s.Store.Catalog, Require: cfg.Web.RequireKeys, Hosts: hosts, Encrypted: cfg.TLS.External})
	asked := Gateway{URL: s.Gateway, Key: gatewayKey.Bytes, Client: s.HTTP}
	served := api.New(&api.System{
		Mode: s.Mode, Version: release.Version(), Gateway: s.Gateway,
		Store: s.Store, Audit: s.Store, Usage: s.Store, Learning: Learning{s.Store, base.Log, state.CountCorrupt(base.Metrics)}, Replicas: s.Replicas, Scheduler: s.Scheduler,
		Cluster: func(ctx context.Context) api.Cluster {
			c := s.Cluster(ctx)
			c.Mode, c.Version = s.Mode, release.Version()
			return c
		},
		SetCount: s.SetCount, Job: s.Job, Ask: asked.Ask, AskParts: asked.AskParts, Traffic: s.Traffic, Artifacts: bundles, TOML: TOML,
		Backups: &backup.Service{Store: s.Store, Bundles: bundles, Mode: s.Mode, Release: release.Version(), Spool: bundles.Spool},
	}, guard, api.Options{CheckBundle: checkBundle(cfg.Runtimes.Pythons)})
	check := func(v *serving.Version) error { return api.CheckRunnable(s.Mode, v) }
	handler := web.Handler(web.Config{
		Guard: guard, API: served, Clipper: clipper.System{Store: s.Store, Replicas: s.Endpoints, Check: check},
		Memory: inflight.New(base.Budget, base.Metrics),
	})
	return &Side{Handler: handler, api: served}, nil
}

// collectEvery is how often unused bundles are collected.
const collectEvery = time.Hour

// Collect deletes bundles that no version has used for as long as is configured, until ctx
// ends.
func (s *Side) Collect(ctx context.Context, keep time.Duration, unused api.Unused, log *slog.Logger) error {
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		gone, err := s.api.Collect(ctx, unused, keep)
		if len(gone) > 0 {
			log.Info("deleted bundles that no version has used for a long time", "bundles", gone, "kept", keep)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("cannot delete all bundles that no version uses; retrying", "in", collectEvery, "err", err)
		}
	}
}

// TOML is a catalog as a configuration file.
func TOML(cat *serving.Catalog) ([]byte, error) { return config.Export(cat) }
