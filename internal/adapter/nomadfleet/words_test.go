package nomadfleet

import (
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
)

func TestPlacementWords(t *testing.T) {
	n := needs{cpu: 700, memoryMB: 428, drivers: []string{"docker", "raw_exec"}, device: "a free nvidia/gpu device"}
	counts := func(names ...string) map[string]int {
		m := map[string]int{}
		for _, name := range names {
			m[name] = 1
		}
		return m
	}
	for want, m := range map[string]api.AllocationMetric{
		"no node is ready in the job's datacenters and node pool":                                           {},
		"none of 3 nodes takes a replica":                                                                   {NodesEvaluated: 3},
		"no node has a free nvidia/gpu device":                                                              {NodesEvaluated: 2, ConstraintFiltered: counts("missing devices"), DimensionExhausted: counts("devices: no devices match request")},
		"no node has 428 MB of memory free; no node has 700 MHz of CPU free":                                {NodesEvaluated: 1, DimensionExhausted: counts("cpu", "memory")},
		"1 of 2 nodes do not have 428 MB of memory free; 1 of 2 nodes do not have a free nvidia/gpu device": {NodesEvaluated: 2, DimensionExhausted: counts("memory"), ConstraintFiltered: counts("missing devices")},
		"no node has the drivers docker and raw_exec":                                                       {NodesEvaluated: 1, ConstraintFiltered: counts("missing drivers")},
		"no node has enough of: network: reserved port collision rpc=80":                                    {NodesEvaluated: 1, DimensionExhausted: counts("network: reserved port collision rpc=80")},
		"no node has its ports in order: two of its allocations hold the same one":                          {NodesEvaluated: 1, DimensionExhausted: counts("network: port collision")},
		"no node has what the job asks for: ${attr.kernel.name} = windows; the quota is used up: cpu":       {NodesEvaluated: 1, ConstraintFiltered: counts("${attr.kernel.name} = windows"), QuotaExhausted: []string{"cpu"}},
	} {
		if got := placement(&m, n); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestFailureWords(t *testing.T) {
	at := time.Unix(1000, 0)
	failed := func(finished time.Time, events ...*api.TaskEvent) *api.TaskState {
		return &api.TaskState{Failed: true, FinishedAt: finished, Events: events}
	}
	code := &api.TaskEvent{Type: api.TaskTerminated, ExitCode: 3}
	for want, states := range map[string]map[string]*api.TaskState{
		"Failed tasks":                               {"container": {Events: []*api.TaskEvent{code}}},
		"the container ended with exit code 3":       {"container": failed(at, &api.TaskEvent{Type: api.TaskStarted}, code, &api.TaskEvent{Type: api.TaskNotRestarting})},
		"the container was ended by signal 9":        {"container": failed(at, &api.TaskEvent{Type: api.TaskTerminated, ExitCode: 137, Signal: 9})},
		"the container ended on its own":             {"container": failed(at, &api.TaskEvent{Type: api.TaskTerminated})},
		"the sidecar could not be started: why":      {"container": failed(at.Add(time.Second), code), "sidecar": failed(at, &api.TaskEvent{Type: api.TaskDriverFailure, DisplayMessage: "why"})},
		"the container did not get an artifact: 404": {"container": failed(at, &api.TaskEvent{Type: api.TaskArtifactDownloadFailed, DisplayMessage: "404"})},
		"the container could not be set up: why":     {"container": failed(at, &api.TaskEvent{Type: api.TaskSetupFailure, DisplayMessage: "why"})},
	} {
		if got := whyFailed(&api.AllocationListStub{ClientDescription: "Failed tasks", TaskStates: states}); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestRolloutWords(t *testing.T) {
	created := time.Unix(1000, 0)
	d := &api.Deployment{Status: "running", CreateTime: created.UnixNano(), TaskGroups: map[string]*api.DeploymentState{jobs.Group: {HealthyAllocs: 1, DesiredTotal: 3, UnhealthyAllocs: 2}}}
	if got, want := rollout(d, created.Add(200*time.Second)), "a rollout is running for 3m20s: 1 of 3 replicas are healthy, 2 failed"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
