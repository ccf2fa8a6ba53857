package cluster

import (
	"context"
	"errors"
	"log/slog"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/cmd/topsail/streams"
	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
)

// Stream serves the streams of the configuration until ctx ends, with a gateway in
// this process. Then it finishes what it has in flight.
func Stream(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if data, updates := cfg.Served(); len(data)+len(updates) == 0 {
		return errors.New("no stream to serve: add a [[stream]] or a [[model_stream]] to the configuration (see docs/streams.md), or name another file with --config")
	}
	p := newParts(cfg, log)
	defer p.Close()
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
	demands, err := p.openDemand()
	if err != nil {
		return err
	}
	health := obs.Health{
		Ready:      func() error { return errors.Join(e.ready(ctx), set.Ready()) },
		Conditions: func() error { return errors.Join(e.store.Condition(), gateway.Conditions()) },
	}
	// The gateway and the store outlive the jobs, which need them for what is in flight.
	return phase.Run(ctx,
		phase.Phase{set.Run, p.announce(e.client, streamService, name, ops, ops, nil)},
		phase.Phase{func(ctx context.Context) error { return gateway.Run(ctx, nil) }},
		e.reports("stream", demands),
		phase.Phase{e.store.Run, e.services.Run, demands.Run, p.ServeOps(ops, health, set.Page())},
	)
}
