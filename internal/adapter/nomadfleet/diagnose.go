package nomadfleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// Diagnosis is how a Nomad does, for people.
type Diagnosis struct {
	Leader  string
	Version string // of a server; empty: the token may not ask
	List    error  // why jobs cannot be listed, nil where they can
	Plan    error  // why no job could be submitted, nil where one could
	Lacking string // why no node takes a replica; empty: one does
	Nodes   *Nodes // nil: the token may not ask
}

// Nodes counts the nodes of the jobs' datacenters and node pool.
type Nodes struct{ All, Ready, WithDriver int }

// Diagnose asks Nomad how it is, and what it would do with a job of ours. The error
// says that it does not answer or has no leader.
func (f *Fleet) Diagnose(ctx context.Context) (Diagnosis, error) {
	var d Diagnosis
	_, err := read(ctx, f, func(q *api.QueryOptions) (any, *api.QueryMeta, error) {
		meta, err := f.client.Raw().Query("/v1/status/leader", &d.Leader, q)
		return nil, meta, err
	})
	switch {
	case err != nil:
		return d, fmt.Errorf("nomad's leader: %w", err)
	case d.Leader == "":
		return d, errors.New("nomad has no leader")
	}
	if d.Version, err = f.serverVersion(ctx); err != nil {
		return d, err
	}
	if d.Nodes, err = f.nodes(ctx); err != nil {
		return d, err
	}
	_, d.List = f.list(ctx)
	d.Lacking, d.Plan = f.dryRun(ctx)
	return d, nil
}

func (f *Fleet) serverVersion(ctx context.Context) (string, error) {
	servers, err := read(ctx, f, func(q *api.QueryOptions) (*api.ServerMembers, *api.QueryMeta, error) {
		members, err := f.client.Agent().MembersOpts(q)
		return members, nil, err
	})
	switch {
	case status(err) == http.StatusForbidden:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("nomad's servers: %w", err)
	}
	for _, one := range servers.Members {
		if version := one.Tags["build"]; version != "" {
			return version, nil
		}
	}
	return "", nil
}

// Machines counts the addresses of the nodes that take replicas; 0 where the token may
// not know.
func (f *Fleet) Machines(ctx context.Context) (int, error) {
	list, err := f.nodeList(ctx)
	seen := map[string]bool{}
	for _, one := range list {
		if isReady(one) {
			seen[one.Address] = true
		}
	}
	return len(seen), err
}

// nodeList are the nodes of the jobs; nil where the token may not know.
func (f *Fleet) nodeList(ctx context.Context) ([]*api.NodeListStub, error) {
	list, err := read(ctx, f, func(q *api.QueryOptions) ([]*api.NodeListStub, *api.QueryMeta, error) {
		return f.client.Nodes().List(q)
	})
	switch {
	case status(err) == http.StatusForbidden:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("nomad's nodes: %w", err)
	}
	return append([]*api.NodeListStub{}, slices.DeleteFunc(list, func(one *api.NodeListStub) bool { return !f.takes(one) })...), nil
}

func isReady(node *api.NodeListStub) bool {
	return node.Status == api.NodeStatusReady && node.SchedulingEligibility == api.NodeSchedulingEligible
}

// nodes is nil where the token may not know.
func (f *Fleet) nodes(ctx context.Context) (*Nodes, error) {
	list, err := f.nodeList(ctx)
	if list == nil {
		return nil, err
	}
	var n Nodes
	for _, one := range list {
		n.All++
		if !isReady(one) {
			continue
		}
		n.Ready++
		if driver := one.Drivers[f.settings.Driver]; driver != nil && driver.Healthy {
			n.WithDriver++
		}
	}
	return &n, nil
}

// takes says whether a node is in the jobs' datacenters and node pool.
func (f *Fleet) takes(node *api.NodeListStub) bool {
	pool := f.settings.NodePool
	if pool == "" {
		pool = api.NodePoolDefault
	}
	return (pool == api.NodePoolAll || pool == node.NodePool) &&
		(len(f.settings.Datacenters) == 0 || slices.ContainsFunc(f.settings.Datacenters, func(pattern string) bool {
			ok, err := path.Match(pattern, node.Datacenter)
			return ok && err == nil
		}))
}

const (
	mostPlans  = 4 // at most
	retryAfter = time.Second
	collision  = "network: port collision"
)

// dryRun plans the job of a version that there is not, which changes nothing. While
// allocations take each other's place, Nomad may count a port of theirs twice, and then
// finds no room on their node at all: such a plan is made again.
func (f *Fleet) dryRun(ctx context.Context) (lacking string, err error) {
	job, err := f.probe(ctx)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		plan, err := write(ctx, f, func(q *api.WriteOptions) (*api.JobPlanResponse, *api.WriteMeta, error) {
			return f.client.Jobs().Plan(job, false, q)
		})
		if err != nil {
			return "", err
		}
		missing := plan.FailedTGAllocs[jobs.Group]
		if missing == nil {
			return "", nil
		}
		lacking = placement(missing, needsOf(job.TaskGroups[0]))
		if missing.DimensionExhausted[collision] == 0 || n == mostPlans {
			return lacking, nil
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return lacking, nil
		}
	}
}

// probe is the job of a version that there is not.
func (f *Fleet) probe(ctx context.Context) (*api.Job, error) {
	v := &serving.Version{ModelID: serving.ModelID{Model: "doctor", Version: "probe"}, InputType: serving.Doubles, Replicas: 1}
	v.Container.Command = []string{"/bin/true"}
	if f.settings.Driver == "docker" {
		v.Container.Image = "topsail-doctor"
	}
	return f.checked(ctx, jobs.Spec{Version: v, Count: 1, SLO: 100 * time.Millisecond, Settings: f.settings})
}
