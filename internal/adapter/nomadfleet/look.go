package nomadfleet

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// look is one look at all jobs, with what is asked further when some of them are
// not as they should be.
type look struct {
	fleet   *Fleet
	stubs   []*api.JobListStub
	details map[string]*detail

	deployments map[string]*api.Deployment // that are active, by job
	unplaced    map[string]*api.AllocationMetric
	failed      map[string]string // why a replica failed that is not replaced yet
}

// further asks for active deployments, for what could not be placed and for
// replicas that failed, if there may be any.
func (l *look) further(ctx context.Context) (err error) {
	var rolling, queued bool
	l.failed = map[string]string{}
	for _, stub := range l.stubs {
		d, s := l.details[stub.ID], summary(stub)
		if d == nil {
			continue
		}
		rolling = rolling || d.rolling
		queued = queued || s.Queued > 0
		if s.Running < d.count && s.Queued == 0 && s.Failed > 0 {
			if l.failed[stub.ID], err = l.fleet.failure(ctx, stub.ID); err != nil {
				return err
			}
		}
	}
	if rolling {
		if l.deployments, err = l.fleet.activeDeployments(ctx); err != nil {
			return err
		}
	}
	if queued {
		l.unplaced, err = l.fleet.unplaced(ctx)
	}
	return err
}

func summary(stub *api.JobListStub) api.TaskGroupSummary {
	if stub.JobSummary == nil {
		return api.TaskGroupSummary{}
	}
	return stub.JobSummary.Summary[jobs.Group]
}

// job puts together what is known of one job.
func (l *look) job(stub *api.JobListStub, d *detail) serving.Job {
	s := summary(stub)
	anew, changed := l.fleet.redefined(d)
	job := serving.Job{
		ModelID: d.id, Count: d.count, Running: s.Running, Index: d.index,
		Outdated:  d.outdated && d.takenBack == "",
		Redefined: anew || changed && !d.outdated,
	}
	if deployment := l.deployments[stub.ID]; deployment != nil && !anew {
		job.Blocked = rollout(deployment, time.Now())
	}
	switch unplaced := l.unplaced[stub.ID]; {
	case s.Running < d.count && unplaced != nil:
		job.Problem = placement(unplaced, d.needs)
	case s.Running < d.count && l.failed[stub.ID] != "":
		job.Problem = l.failed[stub.ID]
	case d.takenBack != "":
		job.Problem = "an update of the job was rolled back: " + d.takenBack
	}
	return job
}

// rollout is an active deployment in words.
func rollout(d *api.Deployment, now time.Time) string {
	text := "a rollout is " + d.Status
	if d.CreateTime > 0 {
		text += fmt.Sprintf(" for %v", now.Sub(time.Unix(0, d.CreateTime)).Round(time.Second))
	}
	if group := d.TaskGroups[jobs.Group]; group != nil {
		text += fmt.Sprintf(": %d of %d replicas are healthy, %d failed", group.HealthyAllocs, group.DesiredTotal, group.UnhealthyAllocs)
	}
	return text
}

// activeDeployments are those that forbid scaling, by job.
func (f *Fleet) activeDeployments(ctx context.Context) (map[string]*api.Deployment, error) {
	list, err := read(ctx, f, func(q *api.QueryOptions) ([]*api.Deployment, *api.QueryMeta, error) {
		q.Filter = `Status != "successful" and Status != "failed" and Status != "cancelled"`
		return f.client.Deployments().List(q)
	})
	active := map[string]*api.Deployment{}
	for _, d := range list {
		active[d.JobID] = d
	}
	return active, err
}

// unplaced says, by job, why the replicas that wait for a node do not get one.
func (f *Fleet) unplaced(ctx context.Context) (map[string]*api.AllocationMetric, error) {
	list, err := read(ctx, f, func(q *api.QueryOptions) ([]*api.Evaluation, *api.QueryMeta, error) {
		q.Filter = `Status == "blocked"`
		return f.client.Evaluations().List(q)
	})
	metrics := map[string]*api.AllocationMetric{}
	for _, eval := range list {
		if m := eval.FailedTGAllocs[jobs.Group]; m != nil {
			metrics[eval.JobID] = m
		}
	}
	return metrics, err
}
