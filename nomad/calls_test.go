//go:build servers

package nomad

import (
	"errors"
	"net/http"
	"strings"

	consulapi "github.com/hashicorp/consul/api"
	nomadapi "github.com/hashicorp/nomad/api"
)

// role asks Consul and Nomad with what a role has.
type role struct {
	consul *consulapi.Client
	nomad  *nomadapi.Client
}

// call is something that a role does, or must not be allowed to.
type call struct {
	name    string
	refused bool
	do      func(role) error
}

// isRefused tells a refusal from other errors. What a Nomad server asks of a client,
// such as logs, is refused with status 500.
func isRefused(err error) bool {
	if e, ok := errors.AsType[consulapi.StatusError](err); ok {
		return e.Code == http.StatusForbidden
	}
	if e, ok := errors.AsType[nomadapi.UnexpectedResponseError](err); ok {
		return e.StatusCode() == http.StatusForbidden || strings.Contains(e.Body(), nomadDenied)
	}
	return false
}

const nomadDenied = "Permission denied" // Nomad's words

var (
	gatewayCalls = []call{
		{"find replicas and gateways", false, seesTopsail},
		{"find other services", false, seesNoLedger},
		{"write a service", true, writeService},
		{"write a node", true, writeNode},
		{"hold a session", true, holdLead},
		{"read who leads", true, readLead},
		{"write other keys", true, writeKey("ledger/key")},
		{"list jobs", true, listJobs(namespace)},
		{"follow events", true, followEvents(nomadapi.TopicJob)},
	}
	schedulerCalls = []call{
		{"find replicas and gateways", false, seesTopsail},
		{"find other services", false, seesNoLedger},
		{"hold the lead", false, holdLead},
		{"write other keys", true, writeKey("topsail/state")},
		{"write a service", true, writeService},
		{"write a node", true, writeNode},
		{"list jobs", false, listJobs(namespace)},
		{"follow jobs, allocations, deployments", false, followEvents(nomadapi.TopicJob, nomadapi.TopicAllocation, nomadapi.TopicDeployment)},
		{"run a model", false, runModel},
		{"read a job with its allocations", false, readJob},
		{"stop other jobs of its namespace, which Nomad cannot express", false, stopJob(namespace)},
		{"list jobs of others", true, listJobs("default")},
		{"register jobs for others", true, registerJob("default")},
		{"stop jobs of others", true, stopJob("default")},
		{"follow nodes", true, followEvents(nomadapi.TopicNode)},
		{"list nodes", true, listNodes},
		{"read logs", true, readLogs},
		{"read variables", true, readVariable},
		{"restart an allocation", true, restart},
		{"make a token", true, makeToken},
	}
	webCalls = []call{
		{"find replicas and gateways", false, seesTopsail},
		{"find other services", false, seesNoLedger},
		{"read who leads", false, readLead},
		{"take the lead", true, writeKey(leadKey)},
		{"hold a session", true, holdLead},
		{"write a service", true, writeService},
		{"list jobs", false, listJobs(namespace)},
		{"follow jobs and allocations", false, followEvents(nomadapi.TopicJob, nomadapi.TopicAllocation)},
		{"read a job with its allocations", false, readJob},
		{"read logs", false, readLogs},
		{"register a job", true, registerJob(namespace)},
		{"scale a job", false, scaleJob},
		{"stop a job", true, stopJob(namespace)},
		{"list jobs of others", true, listJobs("default")},
		{"list nodes", true, listNodes},
		{"read variables", true, readVariable},
		{"restart an allocation", false, restart},
		{"make a token", true, makeToken},
	}
)
