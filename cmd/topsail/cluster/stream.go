package cluster

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/cmd/topsail/streams"
	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/internal/obs"
)

// Stream serves the streams of the configuration until ctx ends, with a gateway in
// this process. Then it finishes what it has in flight.
func Stream(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if data, updates := cfg.Served(); len(data)+len(updates) == 0 {
		return errors.New("no stream to serve: add a [[stream]] or a [[model_stream]] to the configuration (see docs/streams.md), or name another file with --config")
	}
	p := newParts(cfg, log)
	name := role.Name(cfg.Streaming.Name)
	e, err := p.openEdge(ctx, "stream", name)
	if err != nil {
		return err
	}
	defer e.store.Close()
	gateway := e.gateway(ctx, httpapi.Config{}, nil) // of which nothing is served
	informed := informed{gateway, func() error { return e.ready(context.WithoutCancel(ctx)) }}
	set, err := streams.Open(p.Base, streams.Options{Name: name, Scorer: informed, Demand: gateway, Catalog: e.store, API: p.Scheme() + cfg.Web.Addr})
	if err != nil {
		return err
	}
	ops, err := p.ListenOps()
	if err != nil {
		return err
	}
	ready := func() error { return errors.Join(e.ready(ctx), set.Ready()) }
	// The gateway and the store outlive the jobs, which need them for what is in flight.
	rest, stopRest := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRest()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { defer stopRest(); return set.Run(ctx) })
	group.Go(func() error { return role.Ended(rest, gateway.Run(rest, nil)) })
	group.Go(func() error { return role.Ended(rest, e.store.Run(rest)) })
	group.Go(func() error { return role.Ended(rest, e.services.Run(rest)) })
	group.Go(func() error { return role.Ended(ctx, p.announce(ctx, e.client, streamService, name, ops, ops, nil)) })
	group.Go(func() error { return p.report(rest, e.counted()...) })
	group.Go(func() error {
		conditions := func() error { return errors.Join(e.store.Condition(), gateway.Conditions()) }
		return p.ServeOps(rest, ops, obs.Health{Ready: ready, Conditions: conditions}, set.Page())
	})
	return group.Wait()
}
