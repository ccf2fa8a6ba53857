package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/topsail-serving/topsail/cmd/topsail/services"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/adapter/influxdb"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// edge is what a gateway of a cluster is put together from, whether it serves HTTP or
// answers in process.
type edge struct {
	*parts
	name     string // among its peers
	store    *redisstore.Store
	client   *consulregistry.Client
	registry *consulregistry.Registry
	services *services.Services
	local    rpc.Local           // where what calls services listens
	own      *inprocess.Registry // of it
	meter    *demand.Meter
	served   *demand.Meter // of what calls services
	dial     func(ctx context.Context, addr string) (net.Conn, error)
}

// openEdge opens the parts. The last good catalog is kept under the name of the role;
// the store is to be closed.
func (p *parts) openEdge(ctx context.Context, as, name string) (*edge, error) {
	e := &edge{parts: p, name: name, own: inprocess.NewRegistry(), meter: demand.NewMeter(), served: demand.NewMeter()}
	var err error
	if e.dial, err = p.dialSidecars(); err != nil {
		return nil, err
	}
	if e.client, err = consulregistry.Connect(consulregistry.Options{Log: p.Log}); err != nil {
		return nil, err
	}
	if e.registry, err = p.openRegistry(e.client, p.Config.Consul.Service); err != nil {
		return nil, err
	}
	if e.store, err = p.openStore(ctx, as); err != nil {
		return nil, err
	}
	p.storeMetrics(e.store)
	e.services = services.New(services.Config{
		Name: name, Catalog: e.store, Find: services.InConsul(e.client, p.Log), Registry: e.own, Metrics: sidecar.NewMetrics(p.Metrics), Demand: e.served, Local: &e.local, Log: p.Log,
	})
	return e, nil
}

// gateway makes the gateway, which serves gRPC on a listener unless that is nil.
func (e *edge) gateway(ctx context.Context, http httpapi.Config, grpc net.Listener) *gateway.Gateway {
	return gateway.New(ctx, gateway.Config{
		Name: e.name, Catalog: e.store, Resolver: services.Beside(e.registry, e.own), QueryIDs: e.store, Waker: e.store, States: e.store, Records: e.store, Usage: e.store,
		Demand: e.meter, Dial: e.local.Before(e.dial), CacheBytes: int64(e.Config.Gateway.CacheBytes), ExposeModels: e.Config.Gateway.ExposeModels, Metrics: e.Metrics, Log: e.Log, HTTP: http, GRPC: e.GRPC(), GRPCListener: grpc,
	})
}

// ready says why the gateway cannot answer well, or nil. One that has found its catalog and its
// replicas stays ready while Redis and Consul are unavailable.
func (e *edge) ready(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("it is stopping")
	case e.store.State().Source == redisstore.FromNothing:
		return fmt.Errorf("it has no catalog yet: %s", e.store.State().Away)
	case e.registry.LastAnswer().IsZero():
		return errors.New("it has no list of replicas from Consul yet")
	}
	return nil
}

// reports are those of what the gateway asks, of what the services that it calls answer, and of its metrics.
func (e *edge) reports(as string, to *influxdb.Store) phase.Phase {
	return phase.Phase{
		counted{as: "gateway", name: e.name, meter: e.meter}.report(to),
		counted{as: "sidecar", name: e.name, meter: e.served, from: e.services.Used()}.report(to),
		e.reportMetrics(serving.DemandSource{Role: as, Name: e.name}, to),
	}
}

// dialSidecars reaches sidecars, whose certificates may share one name.
func (p *parts) dialSidecars() (func(ctx context.Context, addr string) (net.Conn, error), error) {
	tls := p.TLS
	tls.ServerName = p.Config.TLS.ServerName
	return tls.Dialer()
}
