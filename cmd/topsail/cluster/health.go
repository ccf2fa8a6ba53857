package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/consulregistry"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/traffic"
)

// checkEvery is how often the servers are looked at; a check writes and reads back.
const checkEvery = 15 * time.Second

// health is how the servers are, as the doctor finds them.
type health struct {
	checks []check.Check
	last   atomic.Pointer[[]check.Finding]
}

func newHealth(checks []check.Check) *health {
	h := &health{checks: checks}
	h.last.Store(&[]check.Finding{})
	return h
}

// follow polls until ctx ends.
func (h *health) follow(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		list := check.Run(ctx, h.checks)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		h.last.Store(&list)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// servers are the last findings.
func (h *health) servers() []check.Finding { return *h.last.Load() }

// processes are the processes of one role that Consul knows.
type processes struct {
	role     string
	registry *consulregistry.Registry
	list     atomic.Pointer[[]serving.Endpoint]
}

func newProcesses(client *consulregistry.Client, role, service string) (*processes, error) {
	registry, err := consulregistry.Open(consulregistry.Config{Client: client, Service: service})
	if err != nil {
		return nil, err
	}
	p := &processes{role: role, registry: registry}
	p.list.Store(&[]serving.Endpoint{})
	return p, nil
}

func (p *processes) follow(ctx context.Context) error {
	return p.registry.Watch(ctx, func(list []serving.Endpoint) { p.list.Store(&list) })
}

// shown are the processes as the API shows them. leader is the name of the one that leads.
func (p *processes) shown(leader string) []api.Process {
	list := []api.Process{}
	for _, e := range *p.list.Load() {
		one := api.Process{Role: p.role, Name: e.Replica, Addr: e.Addr, State: "ok", Leader: leader != "" && e.Replica == leader}
		if !e.Ready {
			one.State, one.Detail = "warn", "its health check fails; its log says why"
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b api.Process) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// targets are the metrics pages of processes.
func targets(role traffic.Role, list []serving.Endpoint, page func(ops string) traffic.Source) []traffic.Target {
	var all []traffic.Target
	for _, e := range list {
		if e.Ops != "" {
			all = append(all, traffic.Target{Role: role, Name: e.Replica, Source: page(e.Ops)})
		}
	}
	return all
}
