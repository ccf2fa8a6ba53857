package cluster

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"topsail/cmd/topsail/config"
	"topsail/cmd/topsail/role"
	"topsail/internal/consulregistry"
	"topsail/internal/obs"
	"topsail/web"
)

// Web serves management until ctx ends.
func Web(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	p := newParts(cfg, log)
	ln, err := p.ListenWeb()
	if err != nil {
		return err
	}
	ops, err := p.ListenOps()
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	keys, err := p.Keys(cfg.Web.KeysFile)
	if err != nil {
		return err
	}
	store, err := p.openStore(ctx, "web")
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
	v := newView(cfg.Gateway.Addr, store)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return role.Ended(ctx, store.Run(ctx)) })
	group.Go(func() error { return role.Ended(ctx, p.announce(ctx, client, webService, nameOr(""), ln, ops, nil)) })
	group.Go(func() error { return role.Ended(ctx, v.follow(ctx, replicas)) })
	group.Go(func() error { return p.ServeOps(ctx, ops, obs.Health{Ready: func() error { return nil }}) })
	group.Go(func() error { return obs.ServeHTTP(ctx, ln, web.Handler(v, keys)) })
	return group.Wait()
}
