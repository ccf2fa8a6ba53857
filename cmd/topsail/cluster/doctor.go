package cluster

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/serving"
)

// Checks are those of every server that the configuration depends on. They log
// nothing: what is wrong is in their findings.
func Checks(cfg *config.Config) []doctor.Check {
	p := newParts(cfg, slog.New(slog.DiscardHandler))
	return p.checks(p.checkNomad)
}

func (p *parts) checks(nomad doctor.Check) []doctor.Check {
	client, err := consulregistry.Connect(consulregistry.Options{Log: p.Log})
	if err != nil {
		return []doctor.Check{p.checkRedis, consulUnset(err), nomad, p.checkInfluxDB}
	}
	c := consul{p, client}
	return []doctor.Check{p.checkRedis, c.check, c.checkSidecars, c.checkGateways, c.checkBundles, nomad, p.checkInfluxDB}
}

func consulUnset(err error) doctor.Check {
	return func(ctx context.Context) []doctor.Finding {
		return []doctor.Finding{doctor.Broken(ctx, "consul", err, "correct the CONSUL_* variables")}
	}
}

// consul checks Consul and what it knows.
type consul struct {
	*parts
	client *consulregistry.Client
}

// check asks for the leader, and for the rights to lead.
func (c consul) check(ctx context.Context) []doctor.Finding {
	leader, err := c.client.Leader(ctx)
	if err != nil {
		return []doctor.Finding{doctor.Broken(ctx, "consul", err, "start Consul, or set CONSUL_HTTP_ADDR; its agent must reach the servers")}
	}
	lock := doctor.Good("consul lock", "schedulers may hold %s with this token", leaderKey)
	if err := c.client.MayLock(ctx, leaderKey); err != nil {
		// Only schedulers need it: to a token of another role this says nothing.
		lock = doctor.Finding{Check: "consul lock", State: doctor.Warn, Detail: err.Error(), Next: "if this is a scheduler's token, give it session:write and key:write on " + leaderKey}
	}
	return append([]doctor.Finding{doctor.Good("consul", "leader %s", leader), lock}, doctor.Clock("consul clock", c.client.Ahead())...)
}

// checkSidecars looks for the replicas in Consul.
func (c consul) checkSidecars(ctx context.Context) []doctor.Finding {
	const check = "sidecars"
	list, broken := c.instances(ctx, check, c.Config.Consul.Service)
	if broken != nil {
		return broken
	}
	ready := 0
	for _, one := range list {
		if one.Ready {
			ready++
		}
	}
	f := doctor.Good(check, "%d of %d are ready in service %s", ready, len(list), c.Config.Consul.Service)
	switch {
	case len(list) == 0:
		f.State, f.Detail = doctor.Warn, fmt.Sprintf("none is registered as %s", c.Config.Consul.Service)
		f.Next = "deploy a model version; if there are some, `topsail decision list` says why they have no replicas"
	case ready < len(list):
		f.State, f.Next = doctor.Warn, "look at the logs of those that are not, with `nomad alloc logs`"
	}
	return []doctor.Finding{f}
}

// checkGateways asks every gateway that Consul knows for its health.
func (c consul) checkGateways(ctx context.Context) []doctor.Finding {
	const check = "gateways"
	list, broken := c.instances(ctx, check, gatewayService)
	if broken != nil {
		return broken
	}
	if len(list) == 0 {
		return []doctor.Finding{{Check: check, State: doctor.Warn, Detail: "none is registered as " + gatewayService, Next: "run the job of the gateways, or `topsail gateway --consul-announce`"}}
	}
	checks := make([]doctor.Check, len(list))
	for i, one := range list {
		checks[i] = func(ctx context.Context) []doctor.Finding {
			return []doctor.Finding{c.checkGateway(ctx, one.Addr)}
		}
	}
	return doctor.Run(ctx, checks)
}

func (c consul) checkGateway(ctx context.Context, addr string) doctor.Finding {
	tls := c.TLS
	tls.ServerName = c.Config.TLS.ServerName
	if err := doctor.Healthy(ctx, tls, addr, "/health"); err != nil {
		return doctor.Broken(ctx, "gateway "+addr, err, "look at its log; from here its port must be open, and its certificate one of tls.ca_file")
	}
	return doctor.Good("gateway "+addr, "answers")
}

// instances are those of a service in Consul, or a finding.
func (c consul) instances(ctx context.Context, check, service string) ([]serving.Endpoint, []doctor.Finding) {
	list, err := c.client.Instances(ctx, service)
	if err != nil {
		return nil, []doctor.Finding{doctor.Broken(ctx, check, err, "repair Consul first; its token needs service:read on "+service+" and node:read")}
	}
	return list, nil
}
