package cluster

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
)

// Checks are those of every server that the configuration depends on. They log
// nothing: what is wrong is in their findings.
func Checks(cfg *config.Config) []check.Check {
	p := newParts(cfg, slog.New(slog.DiscardHandler))
	return p.checks(p.checkNomad)
}

func (p *parts) checks(nomad check.Check) []check.Check {
	client, err := consulregistry.Connect(consulregistry.Options{Log: p.Log})
	if err != nil {
		return []check.Check{p.checkRedis, consulUnset(err), nomad, p.checkInfluxDB}
	}
	c := consul{p, client}
	return []check.Check{p.checkRedis, c.check, c.checkSidecars, c.checkGateways, c.checkBundles, nomad, p.checkInfluxDB}
}

func consulUnset(err error) check.Check {
	return func(ctx context.Context) []check.Finding {
		return []check.Finding{check.Broken(ctx, "consul", err, "correct the CONSUL_* variables")}
	}
}

// consul checks Consul and what it knows.
type consul struct {
	*parts
	client *consulregistry.Client
}

// check asks for the leader, and for the rights to lead.
func (c consul) check(ctx context.Context) []check.Finding {
	leader, err := c.client.Leader(ctx)
	if err != nil {
		return []check.Finding{check.Broken(ctx, "consul", err, "start Consul, or set CONSUL_HTTP_ADDR; its agent must reach the servers")}
	}
	lock := check.Good("consul lock", "schedulers may hold %s with this token", leaderKey)
	if err := c.client.MayLock(ctx, leaderKey); err != nil {
		// Only schedulers need it: to a token of another role this says nothing.
		lock = check.Warning("consul lock", err.Error(), "if this is a scheduler's token, give it session:write and key:write on "+leaderKey)
	}
	return append([]check.Finding{check.Good("consul", "leader %s", leader), lock}, doctor.Clock("consul clock", c.client.Ahead())...)
}

// checkSidecars looks for the replicas in Consul.
func (c consul) checkSidecars(ctx context.Context) []check.Finding {
	const name = "sidecars"
	list, broken := c.instances(ctx, name, c.Config.Consul.Service)
	if broken != nil {
		return broken
	}
	ready := 0
	for _, one := range list {
		if one.Ready {
			ready++
		}
	}
	f := check.Good(name, "%d of %d are ready in service %s", ready, len(list), c.Config.Consul.Service)
	switch {
	case len(list) == 0:
		f.State, f.Detail = check.Warn, fmt.Sprintf("none is registered as %s", c.Config.Consul.Service)
		f.Next = "deploy a model version; if there are some, `topsail decision list` says why they have no replicas"
	case ready < len(list):
		f.State, f.Next = check.Warn, "look at the logs of those that are not, with `nomad alloc logs`"
	}
	return []check.Finding{f}
}

// checkGateways asks every gateway that Consul knows for its health.
func (c consul) checkGateways(ctx context.Context) []check.Finding {
	const name = "gateways"
	list, broken := c.instances(ctx, name, gatewayService)
	if broken != nil {
		return broken
	}
	if len(list) == 0 {
		return []check.Finding{check.Warning(name, "none is registered as "+gatewayService, "run the job of the gateways, or `topsail gateway --consul-announce`")}
	}
	checks := make([]check.Check, len(list))
	for i, one := range list {
		checks[i] = func(ctx context.Context) []check.Finding {
			return []check.Finding{c.checkGateway(ctx, one.Addr)}
		}
	}
	return check.Run(ctx, checks)
}

func (c consul) checkGateway(ctx context.Context, addr string) check.Finding {
	tls := c.TLS
	tls.ServerName = c.Config.TLS.ServerName
	if err := doctor.Healthy(ctx, tls, addr, "/health"); err != nil {
		return check.Broken(ctx, "gateway "+addr, err, "look at its log; from here its port must be open, and its certificate one of tls.ca_file")
	}
	return check.Good("gateway "+addr, "answers")
}

// instances are those of a service in Consul, or a finding.
func (c consul) instances(ctx context.Context, name, service string) ([]serving.Endpoint, []check.Finding) {
	list, err := c.client.Instances(ctx, service)
	if err != nil {
		return nil, []check.Finding{check.Broken(ctx, name, err, "repair Consul first; its token needs service:read on "+service+" and node:read")}
	}
	return list, nil
}
