package nomadfleet

import (
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
)

// How long things take in a fakeNomad. Those of a replica are shorter than Nomad's: the suite looks 50 times a second.
const (
	startsIn      = 100 * time.Millisecond
	healthyIn     = 200 * time.Millisecond
	endsIn        = 100 * time.Millisecond
	rescheduledIn = 5 * time.Second
	progressBy    = 11 * time.Minute
)

// fakeJob is a job of a fakeNomad, with its replicas.
type fakeJob struct {
	versions    []*api.Job // by number, so that the last is the present one
	allocs      []*api.AllocationListStub
	deployments []*api.Deployment
	queued      int // replicas that the node has no room for
}

// summary counts the replicas, with those that have ended.
func (j *fakeJob) summary() *api.JobSummary {
	of := map[string]int{}
	for _, a := range j.allocs {
		of[a.ClientStatus]++
	}
	return &api.JobSummary{Summary: map[string]api.TaskGroupSummary{jobs.Group: {
		Queued: j.queued, Starting: of[api.AllocClientStatusPending], Running: of[api.AllocClientStatusRunning],
		Failed: of[api.AllocClientStatusFailed], Complete: of[api.AllocClientStatusComplete],
	}}}
}

func (j *fakeJob) present() *api.Job { return j.versions[len(j.versions)-1] }

// put makes a job the present version.
func (n *fakeNomad) put(job *api.Job) api.JobRegisterResponse {
	j := n.jobs[*job.ID]
	if j == nil {
		j = &fakeJob{}
		n.jobs[*job.ID] = j
	}
	if d := j.rollout(); d != nil {
		d.Status = api.DeploymentStatusCancelled // due to a newer version of the job
	}
	n.index++
	job.Version, job.JobModifyIndex, job.Stable = new(uint64(len(j.versions))), new(n.index), new(false)
	j.versions = append(j.versions, job)
	if *job.TaskGroups[0].Update.MaxParallel > 0 {
		j.deployments = append(j.deployments, &api.Deployment{
			ID: n.uuid(), JobID: *job.ID, JobVersion: *job.Version, Status: api.DeploymentStatusRunning, CreateTime: time.Now().UnixNano(),
			TaskGroups: map[string]*api.DeploymentState{jobs.Group: {DesiredTotal: *job.TaskGroups[0].Count}},
		})
	}
	for heard := range n.listeners {
		heard <- api.Events{Index: n.index, Events: []api.Event{{Topic: api.TopicJob, Key: *job.ID}}}
	}
	n.settle(j, time.Now())
	return api.JobRegisterResponse{JobModifyIndex: *job.JobModifyIndex}
}

func (n *fakeNomad) uuid() string {
	n.index++
	return fmt.Sprintf("%08d-0000-0000-0000-000000000000", n.index)
}

// rollout is the deployment that runs, or nil.
func (j *fakeJob) rollout() *api.Deployment {
	for _, d := range j.deployments {
		if d.Status == api.DeploymentStatusRunning {
			return d
		}
	}
	return nil
}

// settle does what is due for a job.
func (n *fakeNomad) settle(j *fakeJob, now time.Time) {
	for _, a := range j.allocs {
		n.advance(j.versions[a.JobVersion], a, now)
	}
	n.reschedule(j, now)
	current, former := j.replicas()
	want := *j.present().TaskGroups[0].Count
	if *j.present().Stop {
		want = 0
	}
	for ; len(current) > want; current = current[:len(current)-1] {
		stop(current[len(current)-1])
	}
	for ; len(current) < want && n.placed() < n.room; current = append(current, n.place(j, now)) {
	}
	j.queued = want - len(current)
	if d := j.rollout(); d != nil {
		n.roll(j, d, current, former, now)
		return
	}
	for _, a := range former {
		stop(a)
	}
}

// advance has a replica start or end, if it is time.
func (n *fakeNomad) advance(job *api.Job, a *api.AllocationListStub, now time.Time) {
	ended := a.ClientStatus != api.AllocClientStatusPending && a.ClientStatus != api.AllocClientStatusRunning
	switch stopped := a.DesiredStatus == api.AllocDesiredStatusStop; {
	case ended:
	case stopped && now.Sub(time.Unix(0, a.ModifyTime)) >= endsIn:
		a.ClientStatus = api.AllocClientStatusComplete
	case !stopped && a.ClientStatus == api.AllocClientStatusPending && now.Sub(time.Unix(0, a.CreateTime)) >= startsIn:
		n.start(job.TaskGroups[0].Tasks[1], a, now)
	}
}

func (n *fakeNomad) start(task *api.Task, a *api.AllocationListStub, now time.Time) {
	cmd := exec.Command(task.Config["command"].(string), through[[]string](task.Config["args"])...)
	cmd.Env = []string{"PATH=" + n.bin}
	for name, value := range task.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		n.Error(err)
		return
	}
	code := cmd.ProcessState.ExitCode()
	if n.broken {
		code = 3
	}
	a.ClientStatus, a.ModifyTime = api.AllocClientStatusRunning, now.UnixNano()
	state := &api.TaskState{StartedAt: now, Events: []*api.TaskEvent{{Type: api.TaskStarted}}}
	if code != 0 {
		a.ClientStatus, state.Failed, state.FinishedAt = api.AllocClientStatusFailed, true, now
		state.Events = append(state.Events, &api.TaskEvent{Type: api.TaskTerminated, ExitCode: code})
	}
	a.TaskStates = map[string]*api.TaskState{jobs.Container: state}
}

// reschedule replaces replicas that have failed a while ago.
func (n *fakeNomad) reschedule(j *fakeJob, now time.Time) {
	current, _ := j.replicas()
	for _, a := range current {
		if a.ClientStatus == api.AllocClientStatusFailed && now.Sub(time.Unix(0, a.ModifyTime)) >= rescheduledIn {
			a.NextAllocation = n.place(j, now).ID
		}
	}
}

// replicas are those that should run, as the present job says or as another one did.
func (j *fakeJob) replicas() (current, former []*api.AllocationListStub) {
	for _, a := range j.allocs {
		switch {
		case a.DesiredStatus == api.AllocDesiredStatusStop || a.NextAllocation != "":
		case alike(j.versions[a.JobVersion], j.present()):
			current = append(current, a)
		default:
			former = append(former, a)
		}
	}
	return current, former
}

// alike says whether replicas of one job can become those of the other as they run.
func alike(a, b *api.Job) bool {
	return reflect.DeepEqual(a.Meta, b.Meta) && slices.EqualFunc(a.TaskGroups[0].Tasks, b.TaskGroups[0].Tasks, func(a, b *api.Task) bool {
		return reflect.DeepEqual(a.Config, b.Config) && reflect.DeepEqual(a.Env, b.Env)
	})
}

// placed counts the replicas that take room of the node.
func (n *fakeNomad) placed() (count int) {
	for _, j := range n.jobs {
		for _, a := range j.allocs {
			if a.ClientStatus == api.AllocClientStatusPending || a.ClientStatus == api.AllocClientStatusRunning {
				count++
			}
		}
	}
	return count
}

func (n *fakeNomad) place(j *fakeJob, now time.Time) *api.AllocationListStub {
	a := &api.AllocationListStub{
		ID: n.uuid(), Namespace: api.DefaultNamespace, JobID: *j.present().ID, JobVersion: *j.present().Version, TaskGroup: jobs.Group, NodeName: "node", CreateTime: now.UnixNano(),
		DesiredStatus: api.AllocDesiredStatusRun, ClientStatus: api.AllocClientStatusPending, ClientDescription: "No tasks have started",
	}
	j.allocs = append(j.allocs, a)
	return a
}

func stop(a *api.AllocationListStub) {
	a.DesiredStatus, a.ModifyTime = api.AllocDesiredStatusStop, time.Now().UnixNano()
}

// roll ends a deployment once all of its replicas are healthy, or goes back when they do not get so in time.
func (n *fakeNomad) roll(j *fakeJob, d *api.Deployment, current, former []*api.AllocationListStub, now time.Time) {
	group, present := d.TaskGroups[jobs.Group], j.present()
	group.HealthyAllocs = 0
	for _, a := range current {
		if a.ClientStatus == api.AllocClientStatusRunning && now.Sub(a.TaskStates[jobs.Container].StartedAt) >= healthyIn {
			group.HealthyAllocs++
		}
	}
	switch {
	case group.HealthyAllocs == group.DesiredTotal:
		d.Status, present.Stable = api.DeploymentStatusSuccessful, new(true)
		for _, a := range former {
			stop(a)
		}
	case now.Sub(time.Unix(0, d.CreateTime)) >= progressBy:
		d.Status, d.StatusDescription = api.DeploymentStatusFailed, "Failed due to progress deadline"
		for _, to := range slices.Backward(j.versions) {
			if *to.Stable {
				d.StatusDescription += fmt.Sprintf(" - rolling back to job version %d", *to.Version)
				n.put(through[*api.Job](to))
				return
			}
		}
	}
}

// restart is what a client does when it is asked to.
func restart(a *api.AllocationListStub) error {
	if a.ClientStatus != api.AllocClientStatusRunning {
		return errors.New("Task not running")
	}
	state := a.TaskStates[jobs.Container]
	state.Restarts, state.StartedAt = state.Restarts+1, time.Now()
	return nil
}
