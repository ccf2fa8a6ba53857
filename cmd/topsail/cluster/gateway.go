package cluster

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/internal/obs"
)

// Gateway answers queries until ctx ends, then drains.
func Gateway(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	p := newParts(cfg, log)
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
		return errors.Join(err, ln.Close())
	}
	ops, err := p.ListenOps()
	if err != nil {
		err = errors.Join(err, ln.Close())
		if grpc != nil {
			err = errors.Join(err, grpc.Close())
		}
		return err
	}
	gateway := e.gateway(ctx, http, grpc)
	rest, stopRest := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRest()
	var all errgroup.Group
	all.Go(func() error { defer stopRest(); return gateway.Run(ctx, ln) })
	all.Go(func() error { return role.Ended(rest, e.store.Run(rest)) })
	all.Go(func() error { return role.Ended(rest, e.services.Run(rest)) })
	all.Go(func() error { return role.Ended(ctx, p.announce(ctx, e.client, gatewayService, e.name, ln, ops, nil)) })
	all.Go(func() error { return p.report(rest, e.counted()...) })
	all.Go(func() error {
		conditions := func() error { return errors.Join(e.store.Condition(), gateway.Conditions()) }
		return p.ServeOps(rest, ops, obs.Health{Ready: func() error { return e.ready(ctx) }, Conditions: conditions})
	})
	return all.Wait()
}
