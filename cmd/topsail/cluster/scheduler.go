package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/scheduler"
	"github.com/topsail-serving/topsail/scheduler/leader"
	"github.com/topsail-serving/topsail/serving"
)

// leaderKey is the lock in Consul that the leading scheduler holds.
const leaderKey = "topsail/scheduler/leader"

// Scheduler stands for leader, and while it leads sets the numbers of replicas.
func Scheduler(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	p := newParts(cfg, log)
	defer p.Close()
	ops, err := p.ListenOps()
	if err != nil {
		return err
	}
	store, err := p.openStore(ctx, "scheduler")
	if err != nil {
		return err
	}
	defer store.Close()
	p.storeMetrics(store)
	client, err := consulregistry.Connect(consulregistry.Options{Log: log})
	if err != nil {
		return err
	}
	replicas, err := p.openRegistry(client, cfg.Consul.Service)
	if err != nil {
		return err
	}
	fleet, err := p.openFleet(func(id serving.ModelID) *serving.Version { return store.Catalog().Version(id) }, client)
	if err != nil {
		return err
	}
	demand, err := p.openDemand()
	if err != nil {
		return err
	}
	name := role.Name(cfg.Scheduler.Name)
	s := scheduler.New(scheduler.Config{
		Name: name, Catalog: store, Fleet: fleet, Demand: demand, Replicas: replicas, Wakes: store, Hints: fleet,
		Journals: []scheduler.Journal{store, decisions{demand}}, DryRun: cfg.Scheduler.DryRun, Metrics: p.Metrics, Log: log,
	})
	elector := leader.New(leader.Config{Lock: client.Lock(leaderKey), Holder: name, Floor: floor(store, log), Log: log})

	lead := func(ctx context.Context, term *leader.Term) error {
		log.Info("leading", "fence", term.Fence())
		defer log.Info("no longer leading", "fence", term.Fence())
		return s.Run(ctx, term)
	}
	return phase.Run(ctx, phase.Phase{
		func(ctx context.Context) error { return elector.Run(ctx, lead) },
		p.announce(client, schedulerService, name, ops, ops, nil),
		store.Run, demand.Run,
		p.ServeOps(ops, obs.Health{Ready: func() error { return nil }, Conditions: store.Condition}),
	})
}

// floor is the highest fence that has written to the store. While Redis is unavailable nothing is
// written there, and Consul's own numbers have to do.
func floor(store *redisstore.Store, log *slog.Logger) func(context.Context) (uint64, error) {
	return func(ctx context.Context) (uint64, error) {
		fence, err := store.Fence(ctx)
		if err != nil {
			log.Warn("cannot read the last leader's token; relying on Consul's alone", "err", err)
			return 0, nil
		}
		return fence, nil
	}
}

// openFleet opens the jobs in Nomad. version finds what is registered, and client where
// management is; nil where that does not matter.
func (p *parts) openFleet(version func(serving.ModelID) *serving.Version, client *consulregistry.Client) (*nomadfleet.Fleet, error) {
	settings, err := p.jobSettings()
	if err != nil {
		return nil, err
	}
	var fleet *nomadfleet.Fleet
	cfg := nomadfleet.Config{TokenFile: p.Config.Nomad.TokenFile, Jobs: settings, Version: version, Log: p.Log}
	if client != nil {
		cfg.Bundles = func(ctx context.Context) error { return p.bundleSource(client, fleet).check(ctx) }
	}
	fleet, err = nomadfleet.Open(cfg)
	return fleet, err
}

// jobSettings are what the jobs of all versions have in common.
func (p *parts) jobSettings() (jobs.Settings, error) {
	c := p.Config.Jobs
	program := c.Program
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return jobs.Settings{}, fmt.Errorf("cannot find the path of this program; set jobs.program: %w", err)
		}
		program = self
	}
	if c.Mesh && p.Config.TLS.CertFile != "" {
		return jobs.Settings{}, errors.New("jobs.mesh encrypts by itself: leave tls.cert_file out, or the mesh")
	}
	s := jobs.Settings{
		Region: c.Region, Namespace: c.Namespace, Datacenters: c.Datacenters, NodePool: c.NodePool,
		Program: jobs.Program{Source: program, Checksum: c.Checksum, Driver: c.Driver},
		Driver:  c.Driver, CPU: c.CPU, MemoryMB: c.MemoryMB, VaultRole: c.VaultRole,
		Service: p.Config.Consul.Service, Mesh: c.Mesh, TokenFile: p.Config.Sidecar.TokenFile,
		TLS:         jobs.TLS{CertFile: p.Config.TLS.CertFile, KeyFile: p.Config.TLS.KeyFile, CAFile: p.Config.TLS.CAFile, ServerName: p.Config.TLS.ServerName},
		SidecarEnv:  map[string]string{},
		KillTimeout: c.KillTimeout, BundlesURL: c.BundlesURL, RuntimeImage: c.RuntimeImage, WorkDir: c.WorkDir,
	}
	influx := p.influxConfig()
	for name, value := range map[string]string{
		"TOPSAIL_INFLUXDB_URL": influx.URL, "TOPSAIL_INFLUXDB_ORG": influx.Org, "TOPSAIL_INFLUXDB_BUCKET": influx.Bucket,
		"TOPSAIL_INFLUXDB_TOKEN_FILE": p.Config.InfluxDB.TokenFile, "TOPSAIL_LOG_LEVEL": cmp.Or(p.Config.Log.Level, "info"),
		"TOPSAIL_OPS_KEYS_FILE": p.Config.Ops.KeysFile, "TOPSAIL_INFLUXDB_METRICS_MICROS": p.metricsMicros(),
	} {
		if value != "" {
			s.SidecarEnv[name] = value
		}
	}
	if p.Config.TLS.External {
		s.SidecarEnv["TOPSAIL_TLS_EXTERNAL"] = "true"
	}
	return s, nil
}
