package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"topsail/cmd/topsail/config"
	"topsail/cmd/topsail/role"
	"topsail/gateway"
	"topsail/internal/consulregistry"
	"topsail/internal/demand"
	"topsail/internal/obs"
	"topsail/internal/redisstore"
)

// Gateway answers queries until ctx ends, then drains.
func Gateway(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	p := newParts(cfg, log)
	http, err := p.HTTP()
	if err != nil {
		return err
	}
	dial, err := p.dialSidecars()
	if err != nil {
		return err
	}
	store, err := p.openStore(ctx, "gateway")
	if err != nil {
		return err
	}
	defer store.Close()
	p.storeMetrics(store)
	client, err := consulregistry.Connect(consulregistry.Options{Log: log})
	if err != nil {
		return err
	}
	registry, err := p.openRegistry(client, cfg.Consul.Service)
	if err != nil {
		return err
	}
	// Last of all: who connects is not kept waiting for a store that is away.
	ln, err := p.ListenGateway()
	if err != nil {
		return err
	}
	ops, err := p.ListenOps()
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	meter, name := demand.NewMeter(), nameOr(cfg.Gateway.Name)
	edge := gateway.New(ctx, gateway.Config{
		Name: name, Catalog: store, Resolver: registry, QueryIDs: store, Waker: store, States: store, Records: store, Demand: meter, Dial: dial,
		CacheBytes: int64(cfg.Gateway.CacheBytes), Metrics: p.Metrics, Log: log,
		HTTP: http,
	})
	rest, stopRest := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRest()
	var all errgroup.Group
	all.Go(func() error { defer stopRest(); return edge.Run(ctx, ln) })
	all.Go(func() error { return role.Ended(rest, store.Run(rest)) })
	all.Go(func() error { return role.Ended(ctx, p.announce(ctx, client, gatewayService, name, ln, ops, nil)) })
	all.Go(func() error { return p.report(rest, "gateway", name, meter) })
	all.Go(func() error {
		return p.ServeOps(rest, ops, obs.Health{Ready: func() error { return gatewayReady(ctx, store, registry) }})
	})
	return all.Wait()
}

// gatewayReady says why clients had better ask another gateway, or nil. One that
// has found its catalog and its replicas stays ready while Redis and Consul are
// away.
func gatewayReady(ctx context.Context, store *redisstore.Store, registry *consulregistry.Registry) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("it is stopping")
	case store.State().Source == redisstore.FromNothing:
		return fmt.Errorf("it has no catalog yet: %s", store.State().Away)
	case registry.LastAnswer().IsZero():
		return errors.New("it has not heard from Consul yet where replicas are")
	}
	return nil
}

// dialSidecars reaches sidecars, whose certificates may share one name.
func (p *parts) dialSidecars() (func(ctx context.Context, addr string) (net.Conn, error), error) {
	tls := p.TLS
	tls.ServerName = p.Config.TLS.ServerName
	return tls.Dialer()
}
