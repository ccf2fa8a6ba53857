package cluster

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
)

// parts are what every role is put together from.
type parts struct{ *role.Base }

func newParts(cfg *config.Config, log *slog.Logger) *parts { return &parts{role.New(cfg, log)} }

// openStore opens the state in Redis. The last good catalog is kept in the data
// directory under the role's name, so that roles can share the folder; without a
// role it is not kept.
func (p *parts) openStore(ctx context.Context, as string) (*redisstore.Store, error) {
	if as == "" {
		return p.openStoreOn(ctx, "")
	}
	if err := os.MkdirAll(p.Config.DataDir, 0o700); err != nil {
		return nil, err
	}
	return p.openStoreOn(ctx, filepath.Join(p.Config.DataDir, as+".snapshot"))
}

// openStoreOn opens the state in Redis, with its last good catalog in a file.
func (p *parts) openStoreOn(ctx context.Context, snapshot string) (*redisstore.Store, error) {
	server, err := p.Redis()
	if err != nil {
		return nil, err
	}
	return redisstore.Open(ctx, redisstore.Config{Server: server, Prefix: p.Config.Redis.Prefix, Snapshot: snapshot, Log: p.Log})
}

// openRegistry opens the list of a service's instances in Consul.
func (p *parts) openRegistry(client *consulregistry.Client, service string) (*consulregistry.Registry, error) {
	cfg := consulregistry.Config{Client: client, Service: service, Log: p.Log}
	if file := p.Config.Sidecar.TokenFile; file != "" {
		token, err := p.Token(file)
		if err != nil {
			return nil, err
		}
		cfg.Token = token.Bytes
	}
	registry, err := consulregistry.Open(cfg)
	if err != nil {
		return nil, err
	}
	p.Metrics.GaugeFunc("topsail_consul_age_seconds", "Time since Consul last answered where sidecars are; it answers at least every 10 s or so.", func() float64 {
		if at := registry.LastAnswer(); !at.IsZero() {
			return time.Since(at).Seconds()
		}
		return math.Inf(1)
	})
	return registry, nil
}

// storeMetrics shows how the store is doing.
func (p *parts) storeMetrics(store *redisstore.Store) {
	flag := func(on bool) float64 {
		if on {
			return 1
		}
		return 0
	}
	p.Metrics.GaugeFunc("topsail_store_revision", "Revision of the catalog in use.", func() float64 { return float64(store.State().Revision) })
	p.Metrics.GaugeFunc("topsail_store_unavailable", "1 while Redis does not answer and the last good catalog serves.", func() float64 { return flag(store.State().Away != "") })
	p.Metrics.GaugeFunc("topsail_store_unwritable", "1 from when Redis refuses a write, for lack of memory, disk space or permission, until it accepts one.", func() float64 { return flag(!store.Writable()) })
	p.Metrics.GaugeFunc("topsail_store_alarm", "1 while Redis does not hold the catalog that is in use, and an operator has to decide.", func() float64 { return flag(store.State().Alarm != "") })
}
