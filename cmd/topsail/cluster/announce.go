package cluster

import (
	"context"
	"maps"
	"net"
	"strings"

	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/phase"
)

// Services in Consul, by role. The sidecars' name is a setting.
const (
	gatewayService   = "topsail-gateway"
	schedulerService = "topsail-scheduler"
	streamService    = "topsail-stream"
	webService       = "topsail-web"
)

// announce keeps this process registered in Consul, if that is set: under Nomad, Nomad does it.
func (p *parts) announce(client *consulregistry.Client, service, id string, ln, ops net.Listener, meta map[string]string) phase.Job {
	if !p.Config.Consul.Announce {
		return func(context.Context) error { return nil }
	}
	scheme := "http://"
	if p.TLS.CertFile != "" {
		scheme = "https://"
	}
	all := map[string]string{"ops_addr": ops.Addr().String(), "scheme": strings.TrimSuffix(scheme, "://"), "replica": id} // by which it calls itself in logs and decisions, too
	maps.Copy(all, meta)
	one := consulregistry.Service{
		Name: service, ID: service + "-" + id, Addr: ln.Addr().String(), Meta: all,
		ReadyURL: scheme + ops.Addr().String() + "/health/ready",
	}
	return func(ctx context.Context) error { return client.Announce(ctx, one) }
}
