package cluster

import (
	"context"
	"errors"
	"log/slog"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
)

// Gateway answers queries until ctx ends, then drains.
func Gateway(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	p := newParts(cfg, log)
	defer p.Close()
	http, err := p.HTTP()
	if err != nil {
		return err
	}
	e, err := p.openEdge(ctx, "gateway", role.Name(cfg.Gateway.Name))
	if err != nil {
		return err
	}
	defer e.store.Close()
	// Last of all, so that clients that connect do not wait for a store that is unavailable.
	ln, err := p.ListenGateway()
	if err != nil {
		return err
	}
	grpc, err := p.ListenGRPC()
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
	gateway := e.gateway(ctx, http, grpc)
	health := obs.Health{
		Ready:      func() error { return e.ready(ctx) },
		Conditions: func() error { return errors.Join(e.store.Condition(), gateway.Conditions()) },
	}
	return phase.Run(ctx,
		phase.Phase{
			func(ctx context.Context) error { return gateway.Run(ctx, ln) },
			p.announce(e.client, gatewayService, e.name, ln, ops, nil),
		},
		e.reports("gateway", demands),
		phase.Phase{e.store.Run, e.services.Run, demands.Run, p.ServeOps(ops, health)},
	)
}
