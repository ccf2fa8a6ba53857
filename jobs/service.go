package jobs

import (
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// protocol is the one that gateways and the sidecar speak.
const protocol = "2"

// newService registers a replica where gateways find it.
func newService(s Spec) *api.Service {
	service := &api.Service{
		Provider: s.Settings.Provider, Name: s.Settings.Service, PortLabel: "rpc",
		Checks: []api.ServiceCheck{checkReady(s.Settings), checkLive(s.Settings)},
	}
	if s.Settings.Provider == providerConsul {
		service.Meta = serviceMeta(s.Version)
	} else {
		service.Tags = serviceTags(s.Version)
	}
	if s.Settings.Mesh {
		service.TaskName, service.Connect = Sidecar, &api.ConsulConnect{Native: true}
	}
	return service
}

// serviceMeta says in Consul what a replica is.
func serviceMeta(v *serving.Version) map[string]string {
	meta := map[string]string{
		"replica": "${NOMAD_ALLOC_ID}", "index": "${NOMAD_ALLOC_INDEX}", "model": v.Model, "version": v.Version,
		"protocol": protocol, "ops_addr": "${NOMAD_ADDR_ops}",
	}
	if v.Generation != "" {
		meta["definition"] = v.Generation
	}
	return meta
}

// serviceTags say in Nomad what a replica is, whose services have no meta.
func serviceTags(v *serving.Version) []string {
	return []string{"replica=${NOMAD_ALLOC_ID}", "index=${NOMAD_ALLOC_INDEX}", "model=" + v.Model, "version=" + v.Version, "protocol=" + protocol}
}

// checkReady says whether a replica can be asked. Nomad's own checks count no failures.
func checkReady(s Settings) api.ServiceCheck {
	check := newCheck("ready", s)
	check.Interval, check.Timeout = s.HealthInterval, time.Second
	if s.Provider == providerConsul {
		check.FailuresBeforeCritical = 2
	}
	return check
}

// checkLive has a container that hangs, or a sidecar, started anew.
func checkLive(s Settings) api.ServiceCheck {
	check := newCheck("live", s)
	check.Interval, check.Timeout = 5*time.Second, 3*time.Second
	check.CheckRestart = &api.CheckRestart{Limit: 3, Grace: new(10 * time.Second)}
	return check
}

// newCheck asks a sidecar for its health. The agent that does so does not know our CA.
func newCheck(name string, s Settings) api.ServiceCheck {
	check := api.ServiceCheck{Type: "http", Name: name, Path: "/health/" + name, PortLabel: "ops"}
	if s.TLS.CertFile != "" {
		check.Protocol, check.TLSSkipVerify = "https", true
	}
	return check
}
