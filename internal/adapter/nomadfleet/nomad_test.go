package nomadfleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/pipes"
)

// TestContractInBubbles has the suite run on a Nomad in memory; TestContract does on a real one.
func TestContractInBubbles(t *testing.T) {
	contract.FleetInBubbles(t, func(t *testing.T) contract.FleetRig {
		n := newFakeNomad(t)
		return contract.FleetRig{JobFleet: n.fleet(""), Newer: n.fleet("newer")}
	}, "contract")
}

// fakeNomad answers what a Fleet asks, as Nomad does. It looks at the time when it is asked, and has then done what
// was due. Containers are run with a sleep that ends at once: one that ends well goes on running.
type fakeNomad struct {
	*testing.T
	network pipes.Network
	addr    string
	bin     string // with that sleep

	mu        sync.Mutex // guards the following
	instead   func(w http.ResponseWriter, r *http.Request) bool
	room      int  // for replicas, on the only node
	broken    bool // containers that start end with exit code 3
	index     uint64
	jobs      map[string]*fakeJob
	listeners map[chan api.Events]bool
}

func newFakeNomad(t *testing.T) *fakeNomad {
	n := &fakeNomad{T: t, bin: t.TempDir(), room: 100, jobs: map[string]*fakeJob{}, listeners: map[chan api.Events]bool{}}
	ends, err := exec.LookPath("true")
	if err := errors.Join(err, os.Symlink(ends, filepath.Join(n.bin, "sleep"))); err != nil {
		t.Fatal(err)
	}
	n.addr = n.network.Serve(t, n.handler())
	return n
}

// set changes a field.
func (n *fakeNomad) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// intercept has a function answer requests in Nomad's place, or say that it has not: it may also change something before
// Nomad answers. nil: none.
func (n *fakeNomad) intercept(answer func(w http.ResponseWriter, r *http.Request) bool) {
	n.set(func() { n.instead = answer })
}

// fleet is that of a release of Topsail.
func (n *fakeNomad) fleet(release string) *Fleet {
	f, err := Open(Config{
		API: &api.Config{Address: n.addr, HttpClient: n.network.Client()}, Log: slog.New(slog.NewTextHandler(n.Output(), nil)),
		Jobs: jobs.Settings{
			Program: jobs.Program{Source: "/bin/topsail", CPU: 10, MemoryMB: 32}, Provider: "nomad", CPU: 10, MemoryMB: 32,
			SidecarEnv: map[string]string{"TOPSAIL_RELEASE": release},
		},
	})
	if err != nil {
		n.Fatal(err)
	}
	return f
}

// endpoint makes an answer of Nomad, which is JSON.
type endpoint func(r *http.Request) (any, error)

// refusal is an answer that is an error; other errors are answered with 500.
type refusal struct {
	code int
	text string
}

func (r refusal) Error() string { return r.text }

func (n *fakeNomad) handler() http.Handler {
	allocs := func(j *fakeJob) []*api.AllocationListStub { return j.allocs }
	deployments := func(j *fakeJob) []*api.Deployment { return j.deployments }
	mux := http.NewServeMux()
	for pattern, answer := range map[string]endpoint{
		"GET /v1/jobs":                              n.list,
		"PUT /v1/jobs":                              n.register,
		"PUT /v1/validate/job":                      always(api.JobValidateResponse{}),
		"GET /v1/job/{id}":                          ofJob(n, func(j *fakeJob, _ any) (any, error) { return j.present(), nil }),
		"GET /v1/job/{id}/versions":                 ofJob(n, func(j *fakeJob, _ any) (any, error) { return api.JobVersionsResponse{Versions: j.versions}, nil }),
		"PUT /v1/job/{id}/scale":                    ofJob(n, n.scale),
		"PUT /v1/job/{id}/stable":                   ofJob(n, stable),
		"DELETE /v1/job/{id}":                       n.deregister,
		"PUT /v1/job/{id}/plan":                     n.plan,
		"GET /v1/job/{id}/allocations":              inJobs(n, allocs),
		"GET /v1/job/{id}/deployments":              inJobs(n, deployments),
		"GET /v1/allocations":                       inJobs(n, allocs),
		"GET /v1/deployments":                       inJobs(n, deployments),
		"GET /v1/evaluations":                       inJobs(n, evaluations),
		"GET /v1/allocation/{alloc}":                n.info,
		"PUT /v1/allocation/{alloc}/stop":           ofAlloc(n, func(a *api.AllocationListStub) error { stop(a); return nil }),
		"PUT /v1/client/allocation/{alloc}/restart": ofAlloc(n, restart),
		"GET /v1/status/leader":                     always("127.0.0.1:4647"),
		"GET /v1/agent/members":                     always(api.ServerMembers{Members: []*api.AgentMember{{Tags: map[string]string{"build": "1.10.0"}}}}),
		"GET /v1/nodes":                             always([]api.NodeListStub{{NodePool: "default", Status: "ready", SchedulingEligibility: "eligible"}}),
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { n.answer(w, r, answer) })
	}
	mux.HandleFunc("GET /v1/event/stream", n.events)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // all of it, before an answer: no buffer is between both ends
		r.Body = io.NopCloser(bytes.NewReader(text))
		n.mu.Lock()
		instead := n.instead
		n.mu.Unlock()
		if instead == nil || !instead(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}

func (n *fakeNomad) answer(w http.ResponseWriter, r *http.Request, answer endpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(n.jobs)) {
		n.settle(n.jobs[id], time.Now())
	}
	value, err := answer(r)
	if err != nil {
		refused, _ := errors.AsType[refusal](err)
		http.Error(w, err.Error(), cmp.Or(refused.code, http.StatusInternalServerError))
		return
	}
	w.Header().Set("X-Nomad-Index", strconv.FormatUint(n.index, 10))
	if err := json.NewEncoder(w).Encode(filtered(value, r.FormValue("filter"))); err != nil {
		n.Error(err)
	}
}

// clause is one of those that a filter of a Fleet consists of.
var clause = regexp.MustCompile(`^(\w+) (==|!=|matches) "(.*)"$`)

// filtered is what of a list a filter leaves.
func filtered(value any, filter string) any {
	if filter == "" {
		return value
	}
	list := through[[]map[string]any](value)
	for text := range strings.SplitSeq(filter, " and ") {
		parts := clause.FindStringSubmatch(text)
		list = slices.DeleteFunc(list, func(item map[string]any) bool {
			is := fmt.Sprint(item[parts[1]])
			switch parts[2] {
			case "==":
				return is != parts[3]
			case "!=":
				return is == parts[3]
			}
			return !regexp.MustCompile(parts[3]).MatchString(is)
		})
	}
	return list
}

// through is a value as it comes out of JSON.
func through[T any](value any) (out T) {
	text, err := json.Marshal(value)
	if err := errors.Join(err, json.Unmarshal(text, &out)); err != nil {
		panic(err)
	}
	return out
}

func always(value any) endpoint {
	return func(*http.Request) (any, error) { return value, nil }
}

// ofJob is an endpoint of one job.
func ofJob[Body any](n *fakeNomad, do func(*fakeJob, Body) (any, error)) endpoint {
	return func(r *http.Request) (any, error) {
		j := n.jobs[r.PathValue("id")]
		if j == nil {
			return nil, refusal{http.StatusNotFound, "job not found"}
		}
		return do(j, body[Body](r))
	}
}

// body is that of a request, if it has one.
func body[T any](r *http.Request) (value T) {
	_ = json.NewDecoder(r.Body).Decode(&value)
	return value
}

// inJobs lists something of one job or of all; of a job that is not there it lists nothing.
func inJobs[T any](n *fakeNomad, of func(*fakeJob) []T) endpoint {
	return func(r *http.Request) (any, error) {
		all := []T{}
		for id, j := range n.jobs {
			if only := r.PathValue("id"); only == "" || only == id {
				all = append(all, of(j)...)
			}
		}
		return all, nil
	}
}

func ofAlloc(n *fakeNomad, do func(*api.AllocationListStub) error) endpoint {
	return func(r *http.Request) (any, error) {
		for _, j := range n.jobs {
			for _, a := range j.allocs {
				if a.ID == r.PathValue("alloc") {
					return a, do(a)
				}
			}
		}
		return nil, refusal{http.StatusNotFound, "alloc not found"}
	}
}

// info is an allocation with its job, whether it has ended or not.
func (n *fakeNomad) info(r *http.Request) (any, error) {
	found, err := ofAlloc(n, func(*api.AllocationListStub) error { return nil })(r)
	if err != nil {
		return nil, err
	}
	stub := found.(*api.AllocationListStub)
	a := api.Allocation{ID: stub.ID, Namespace: stub.Namespace, JobID: stub.JobID, TaskGroup: stub.TaskGroup, NodeName: stub.NodeName}
	if j := n.jobs[stub.JobID]; j != nil {
		a.Job = j.present()
	}
	return a, nil
}

func (n *fakeNomad) list(r *http.Request) (any, error) {
	stubs := []*api.JobListStub{}
	for _, id := range slices.Sorted(maps.Keys(n.jobs)) {
		j, job := n.jobs[id], n.jobs[id].present()
		stub := &api.JobListStub{ID: id, Stop: *job.Stop, JobModifyIndex: *job.JobModifyIndex, JobSummary: j.summary()}
		if r.FormValue("meta") == "true" {
			stub.Meta = job.Meta
		}
		if strings.HasPrefix(id, r.FormValue("prefix")) {
			stubs = append(stubs, stub)
		}
	}
	return stubs, nil
}

func (n *fakeNomad) register(r *http.Request) (any, error) {
	req := body[api.JobRegisterRequest](r)
	var is uint64
	if j := n.jobs[*req.Job.ID]; j != nil {
		is = *j.present().JobModifyIndex
	}
	if req.EnforceIndex && req.JobModifyIndex != is {
		return nil, fmt.Errorf("%s %d: the job is at %d", api.RegisterEnforceIndexErrPrefix, req.JobModifyIndex, is)
	}
	req.Job.Canonicalize()
	return n.put(req.Job), nil
}

func (n *fakeNomad) scale(j *fakeJob, req api.ScalingRequest) (any, error) {
	job := through[*api.Job](j.present())
	switch is := *job.JobModifyIndex; {
	case req.Target["Group"] != jobs.Group:
		return nil, refusal{http.StatusBadRequest, "task group specified for scaling does not exist in job"}
	case j.rollout() != nil:
		return nil, refusal{http.StatusBadRequest, "job scaling blocked due to active deployment"}
	case req.JobModifyIndex > 0 && req.JobModifyIndex != is:
		return nil, fmt.Errorf("%s %d: the job is at %d", api.RegisterEnforceIndexErrPrefix, req.JobModifyIndex, is)
	}
	*job.TaskGroups[0].Count = int(*req.Count)
	return n.put(job), nil
}

func stable(j *fakeJob, req api.JobStabilityRequest) (any, error) {
	j.versions[req.JobVersion].Stable = &req.Stable
	return api.JobStabilityResponse{}, nil
}

func (n *fakeNomad) deregister(r *http.Request) (any, error) {
	j := n.jobs[r.PathValue("id")]
	if j == nil {
		return api.JobDeregisterResponse{}, nil
	}
	job := through[*api.Job](j.present())
	*job.Stop = true
	return n.put(job), nil
}

func (n *fakeNomad) plan(r *http.Request) (any, error) {
	want, fit := *body[api.JobPlanRequest](r).Job.TaskGroups[0].Count, n.room-n.placed()
	plan := api.JobPlanResponse{Annotations: &api.PlanAnnotations{DesiredTGUpdates: map[string]*api.DesiredUpdates{jobs.Group: {Place: uint64(want)}}}}
	if want > fit {
		plan.FailedTGAllocs = noRoom(want - fit)
	}
	return plan, nil
}

func evaluations(j *fakeJob) []*api.Evaluation {
	list := []*api.Evaluation{{JobID: *j.present().ID, Status: "complete"}}
	if j.queued > 0 {
		list = append(list, &api.Evaluation{JobID: *j.present().ID, Status: "blocked", FailedTGAllocs: noRoom(j.queued)})
	}
	return list
}

func noRoom(replicas int) map[string]*api.AllocationMetric {
	return map[string]*api.AllocationMetric{jobs.Group: {NodesEvaluated: 1, DimensionExhausted: map[string]int{"memory": 1}, CoalescedFailures: replicas - 1}}
}

// events streams changes of jobs, until one of both sides ends that.
func (n *fakeNomad) events(w http.ResponseWriter, r *http.Request) {
	heard := make(chan api.Events, 100)
	n.set(func() { n.listeners[heard] = true })
	defer n.set(func() { delete(n.listeners, heard) })
	for out := json.NewEncoder(w); ; {
		w.(http.Flusher).Flush()
		select {
		case events, open := <-heard:
			if !open {
				return
			}
			_ = out.Encode(events)
		case <-r.Context().Done():
			return
		}
	}
}

// cut ends all streams of events.
func (n *fakeNomad) cut() {
	for heard := range n.listeners {
		close(heard)
	}
	clear(n.listeners)
}
