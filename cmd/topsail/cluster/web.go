package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/manage"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/artifact"
	"github.com/topsail-serving/topsail/web/traffic"
)

// Web serves management until ctx ends.
func Web(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	p := newParts(cfg, log)
	defer p.Close()
	ln, err := p.ListenWeb()
	if err != nil {
		return err
	}
	ops, err := p.ListenOps()
	if err != nil {
		return err
	}
	store, err := p.openStore(ctx, "web")
	if err != nil {
		return err
	}
	defer store.Close()
	p.storeMetrics(store)
	m, err := p.newManagement(store)
	if err != nil {
		return err
	}
	bundles, err := p.bundles(ctx, store)
	if err != nil {
		return err
	}
	m.health.checks = append(m.health.checks, manage.CheckRoom(bundles, store.Catalog))
	manage.RoomMetrics(p.Metrics, bundles)
	side, err := manage.New(p.Base, m.system(), bundles)
	if err != nil {
		return err
	}
	jobs := phase.Phase{
		store.Run, side.Run,
		func(ctx context.Context) error { return manage.Adopt(ctx, cfg, bundles, p.Log) },
		p.announce(m.client, webService, role.Name(""), ln, ops, nil),
		p.ServeOps(ops, obs.Health{
			Ready:      func() error { return nil },
			Conditions: func() error { return errors.Join(store.Condition(), bundles.Condition()) },
		}),
		p.ServeWeb(ln, side),
	}
	if keep := time.Duration(cfg.Web.BundlesKeptHours) * time.Hour; keep > 0 {
		jobs = append(jobs, func(ctx context.Context) error { return side.Collect(ctx, keep, store, p.Log) })
	}
	return phase.Run(ctx, append(jobs, m.jobs()...))
}

// bundles are those that all management processes share. Without Redis there is no key yet,
// and addresses are not signed.
func (p *parts) bundles(ctx context.Context, store *redisstore.Store) (*artifact.Store, error) {
	bucket, err := manage.Bucket(p.Config, func(most int64) artifact.Bucket { return store.Bundles(most) })
	if err != nil {
		return nil, err
	}
	key, err := store.Secret(ctx, "bundles", rand.Text())
	if err != nil {
		p.Log.Warn("the addresses of bundles are not signed until the next start", "err", err)
		return manage.Bundles(p.Config, bucket, nil)
	}
	return manage.Bundles(p.Config, bucket, []byte(key))
}

// management is what the management side sees of a cluster.
type management struct {
	*parts
	store      *redisstore.Store
	client     *consulregistry.Client
	registry   *consulregistry.Registry
	replicas   *replicas
	gateways   *processes
	schedulers *processes
	sides      *processes
	streams    *processes
	health     *health
	traffic    *traffic.Collector
	scheduler  manage.Scheduler
	fleet      *nomadfleet.Fleet
	http       *http.Client
	opsKey     func() []byte
}

func (p *parts) newManagement(store *redisstore.Store) (*management, error) {
	m := &management{parts: p, store: store}
	quiet := newParts(p.Config, slog.New(slog.DiscardHandler))
	m.health = newHealth(quiet.checks(quiet.checkNomadSeen))
	var err error
	if m.client, err = consulregistry.Connect(consulregistry.Options{Log: p.Log}); err != nil {
		return nil, err
	}
	if m.registry, err = p.openRegistry(m.client, p.Config.Consul.Service); err != nil {
		return nil, err
	}
	for _, one := range []struct {
		into          **processes
		role, service string
	}{{&m.gateways, "gateway", gatewayService}, {&m.schedulers, "scheduler", schedulerService}, {&m.sides, "web", webService}, {&m.streams, "stream", streamService}} {
		if *one.into, err = newProcesses(m.client, one.role, one.service); err != nil {
			return nil, err
		}
	}
	nomad, err := p.openFleet(nil, nil)
	if err != nil {
		return nil, err
	}
	m.fleet = nomad
	m.replicas = newReplicas(nomad, store.Catalog, p.Log)
	if m.http, err = p.Client(); err != nil {
		return nil, err
	}
	key, err := p.Token(p.Config.Web.OpsKeyFile)
	if err != nil {
		return nil, err
	}
	m.opsKey = key.Bytes
	m.traffic = traffic.New(traffic.Config{Targets: m.targets, Keeper: store, Log: p.Log})
	m.replicas.calls = m.traffic.Replicas
	m.scheduler = manage.Scheduler{Traffic: m.traffic, Catalog: store.Catalog, DryRun: p.Config.Scheduler.DryRun, Journal: store}
	return m, nil
}

// jobs are what keeps it up to date.
func (m *management) jobs() phase.Phase {
	return phase.Phase{
		m.replicas.follow, m.gateways.follow, m.schedulers.follow, m.sides.follow, m.streams.follow, m.health.follow, m.traffic.Run,
		func(ctx context.Context) error {
			return m.registry.Watch(ctx, func(list []serving.Endpoint) { m.replicas.registered.Store(&list) })
		},
	}
}

// targets are the processes whose metrics are read.
func (m *management) targets() []traffic.Target {
	page := func(ops string) traffic.Source {
		return traffic.Page{URL: m.Scheme() + ops + "/metrics", Key: string(m.opsKey()), Client: m.http}
	}
	// What serves streams has a gateway in its process, and so the metrics of one.
	return slices.Concat(targets(traffic.Gateway, *m.gateways.list.Load(), page), targets(traffic.Gateway, *m.streams.list.Load(), page),
		targets(traffic.Scheduler, *m.schedulers.list.Load(), page), targets(traffic.Sidecar, m.replicas.endpoints(), page))
}

func (m *management) system() manage.System {
	return manage.System{
		Mode: "cluster", Store: m.store, Replicas: m.replicas, Endpoints: m.replicas.endpoints, Scheduler: m.scheduler,
		Gateway: m.gateway, Cluster: m.cluster, SetCount: m.setCount, Job: m.job, Traffic: m.traffic, HTTP: m.http,
	}
}

// gateway is a gateway that is well, or the one that the configuration names.
func (m *management) gateway() string {
	for _, e := range *m.gateways.list.Load() {
		if e.Ready {
			return m.Scheme() + e.Addr
		}
	}
	return m.Scheme() + m.Config.Gateway.Addr
}

// cluster is the processes and servers as they are.
func (m *management) cluster(ctx context.Context) api.Cluster {
	leader, _ := m.traffic.Leader()
	c := api.Cluster{
		Servers:   m.health.servers(),
		Processes: slices.Concat(m.gateways.shown(""), m.schedulers.shown(leader), m.sides.shown(""), m.streams.shown("")),
	}
	if state := m.store.State(); state.Alarm != "" {
		c.Servers = append([]check.Finding{check.Bad("store", state.Alarm, "decide with `topsail restore`; docs/operations.md says how")}, c.Servers...)
	}
	c.Alarms = manage.Alarms(c.Servers, m.traffic, m.replicas.Replicas())
	return c
}

// setCount sets how many processes the Nomad job of a role has.
func (m *management) setCount(ctx context.Context, role string, count int, reason string) error {
	job := "topsail-" + role
	err := m.fleet.ScaleService(ctx, job, role, count, reason)
	switch {
	case errors.Is(err, serving.ErrJobBlocked):
		return fmt.Errorf("%w: Nomad is just changing the job %s: wait until its deployment has ended, or end it", api.ErrRefused, job)
	case errors.Is(err, serving.ErrJobChanged): // what is not there has another index, too
		return fmt.Errorf("%w: Nomad has no job %s, or it has just been changed: see `nomad job status`", api.ErrRefused, job)
	case errors.Is(err, serving.ErrJobRefused):
		return fmt.Errorf("%w: %w", api.ErrRefused, err)
	}
	return err
}

// job is the Nomad job of a version, and what Nomad would do with it.
func (m *management) job(ctx context.Context, id serving.ModelID, secrets bool) (api.Job, error) {
	cat := m.store.Catalog()
	v := cat.Version(id)
	if v == nil {
		return api.Job{}, fmt.Errorf("version %v: %w", id, api.ErrRefused)
	}
	settings, err := m.jobSettings()
	if err != nil {
		return api.Job{}, err
	}
	text, err := jobs.Shown(jobs.Spec{Version: v, Count: v.Replicas, SLO: longestSLO(cat, id.Model), Settings: settings}, secrets)
	if err != nil {
		return api.Job{}, fmt.Errorf("%w: %w", api.ErrRefused, err)
	}
	plan, err := m.fleet.Plan(ctx, v, longestSLO(cat, id.Model))
	if err != nil {
		plan = "Nomad does not say: " + err.Error()
	}
	return api.Job{Kind: "nomad", Text: text, Plan: cmp.Or(plan, "nothing to do")}, nil
}
