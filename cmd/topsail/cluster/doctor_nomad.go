package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/internal/check"
)

// rightsCheck is about what the token may do.
const rightsCheck = "nomad token"

// checkNomad asks Nomad how it is, and what it would do with a job.
func (p *parts) checkNomad(ctx context.Context) []check.Finding {
	const name = "nomad"
	fleet, err := p.openFleet(nil, nil)
	if err != nil {
		return []check.Finding{check.Broken(ctx, name, err, "correct the settings [jobs] and [nomad], and the NOMAD_* variables")}
	}
	d, err := fleet.Diagnose(ctx)
	if err != nil {
		return []check.Finding{check.Broken(ctx, name, err, "start Nomad's servers, or set NOMAD_ADDR; the token is in nomad.token_file or NOMAD_TOKEN")}
	}
	return judgeNomad(d, p.Config.Jobs)
}

// checkNomadSeen is what the management side checks: it may look at jobs, and plan none.
func (p *parts) checkNomadSeen(ctx context.Context) []check.Finding {
	found := p.checkNomad(ctx)
	return slices.DeleteFunc(found, func(f check.Finding) bool { return f.Name == rightsCheck })
}

func judgeNomad(d nomadfleet.Diagnosis, jobs config.Jobs) []check.Finding {
	server := check.Good("nomad", "leader %s, version %s", d.Leader, d.Version)
	if d.Version == "" {
		server.Detail = fmt.Sprintf("leader %s; this token may not read the version", d.Leader)
	}
	rights := check.Good(rightsCheck, "may list and plan jobs")
	if err := firstOf(d.List, d.Plan); err != nil {
		rights = check.Bad(rights.Name, err.Error(), "give the scheduler's token list-jobs, read-job and submit-job in the namespace of jobs.namespace")
	}
	return []check.Finding{server, rights, judgeNodes(d, jobs)}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// judgeNodes says whether a replica finds a place.
func judgeNodes(d nomadfleet.Diagnosis, jobs config.Jobs) check.Finding {
	f := check.Good("nomad nodes", "the token may not list nodes")
	if n := d.Nodes; n != nil {
		f.Detail = fmt.Sprintf("%d of %d are ready in datacenters %v, %d with driver %s", n.Ready, n.All, jobs.Datacenters, n.WithDriver, jobs.Driver)
		if n.WithDriver == 0 {
			f.State, f.Next = check.Failed, "start Nomad clients there with the driver, or set jobs.datacenters, jobs.node_pool and jobs.driver"
			return f
		}
	}
	switch {
	case d.Lacking != "":
		f.State, f.Next = check.Failed, "give the nodes what is missing, or set [jobs] to what they have"
		f.Detail += "; no node has room for a replica: " + d.Lacking
	case d.Plan == nil:
		f.Detail += "; there is room for a replica"
	case d.Nodes == nil:
		f.State, f.Next = check.Warn, "run this again with a token that has node:read"
	}
	return f
}
