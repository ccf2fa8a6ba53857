package nomadfleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// Replica is an allocation of a version's job.
type Replica struct {
	ID       string // the allocation's
	Job      string // as jobs.ID names it
	Node     string
	State    string // "starting", "running", "draining", "failed" or "stopped"
	Reason   string // why it is not running, or why its container ended last
	Restarts int    // of the container
	Since    time.Time
}

// What a Replica's State can be.
const (
	Starting = "starting"
	Running  = "running"
	Draining = "draining"
	Failed   = "failed"
	Stopped  = "stopped"
)

// Replicas lists the replicas of all versions by id: the present ones, and those that failed and
// have not been replaced yet.
func (f *Fleet) Replicas(ctx context.Context) ([]Replica, error) {
	allocs, err := read(ctx, f, func(q *api.QueryOptions) ([]*api.AllocationListStub, *api.QueryMeta, error) {
		q.Filter = `JobID matches "^` + jobs.Prefix + `" and TaskGroup == "` + jobs.Group + `"`
		return f.client.Allocations().List(q)
	})
	if err != nil {
		return nil, fmt.Errorf("list replicas: %s", said(err))
	}
	var list []Replica
	for _, a := range allocs {
		if gone(a) {
			continue
		}
		list = append(list, newReplica(a))
	}
	slices.SortFunc(list, func(a, b Replica) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// gone says whether an allocation is history.
func gone(a *api.AllocationListStub) bool {
	ended := a.ClientStatus == api.AllocClientStatusComplete || a.ClientStatus == api.AllocClientStatusLost || a.ClientStatus == api.AllocClientStatusFailed
	return ended && (a.DesiredStatus != api.AllocDesiredStatusRun || a.NextAllocation != "" || a.ClientStatus == api.AllocClientStatusComplete)
}

func newReplica(a *api.AllocationListStub) Replica {
	r := Replica{ID: a.ID, Job: a.JobID, Node: a.NodeName, State: Starting, Since: time.Unix(0, a.CreateTime).UTC()}
	if container := a.TaskStates[jobs.Container]; container != nil {
		r.Restarts = int(container.Restarts)
		r.Reason = latest(container.Events)
		if !container.StartedAt.IsZero() {
			r.Since = container.StartedAt.UTC()
		}
	}
	switch {
	case a.ClientStatus == api.AllocClientStatusFailed:
		r.State, r.Reason = Failed, whyFailed(a)
	case a.DesiredStatus != api.AllocDesiredStatusRun:
		r.State, r.Reason = Draining, a.DesiredDescription
	case a.ClientStatus == api.AllocClientStatusRunning:
		r.State = Running
	case a.ClientStatus == api.AllocClientStatusPending:
		r.Reason = cmp.Or(r.Reason, preparing(a))
	case a.ClientStatus == api.AllocClientStatusUnknown:
		r.Reason = "its node does not answer Nomad; it may still serve"
	}
	return r
}

// latest says why a task ended last; empty where it never did.
func latest(events []*api.TaskEvent) string {
	for _, e := range slices.Backward(events) {
		if words := eventWords(e); words != "" {
			return words
		}
	}
	return ""
}

// preparing is what Nomad does last for a task that does not run yet.
func preparing(a *api.AllocationListStub) string {
	for _, name := range []string{jobs.Container, jobs.Sidecar} {
		if state := a.TaskStates[name]; state != nil && len(state.Events) > 0 {
			return state.Events[len(state.Events)-1].DisplayMessage
		}
	}
	return a.ClientDescription
}

// between is how often a container that is between two runs is looked at again.
const between = 100 * time.Millisecond

// Restart ends the container of a replica, which Nomad then starts anew in its place.
// A container that is between two runs when it is asked to is ended once it runs.
func (f *Fleet) Restart(ctx context.Context, replica string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	alloc, err := f.allocation(ctx, replica)
	if err != nil {
		return err
	}
	for {
		_, err := read(ctx, f, func(q *api.QueryOptions) (any, *api.QueryMeta, error) {
			return nil, nil, f.client.Allocations().Restart(alloc, jobs.Container, q)
		})
		switch {
		case err == nil:
			return nil
		case status(err) == http.StatusNotFound: // gone since it was found
			return ErrNoReplica
		}
		refusal := fmt.Errorf("restart replica %.8s: %s", replica, said(err))
		if !strings.Contains(said(err), "Task not running") {
			return refusal
		}
		select {
		case <-ctx.Done():
			return refusal
		case <-time.After(between):
		}
	}
}

// Drain has a replica end what it has and go; Nomad starts another one.
func (f *Fleet) Drain(ctx context.Context, replica string) error {
	alloc, err := f.allocation(ctx, replica)
	if err != nil {
		return err
	}
	_, err = read(ctx, f, func(q *api.QueryOptions) (*api.AllocStopResponse, *api.QueryMeta, error) {
		answer, err := f.client.Allocations().Stop(alloc, q)
		return answer, nil, err
	})
	switch {
	case status(err) == http.StatusNotFound: // gone since it was found
		return ErrNoReplica
	case err != nil:
		return fmt.Errorf("drain replica %.8s: %s", replica, said(err))
	}
	return nil
}

// ErrNoReplica says that there is no replica of this id.
var ErrNoReplica = errors.New("the replica does not exist: see the list of replicas")

// VersionOf is the version of a replica, or of one that has ended and that Nomad still knows.
func (f *Fleet) VersionOf(ctx context.Context, replica string) (serving.ModelID, error) {
	alloc, err := f.allocation(ctx, replica)
	switch {
	case err != nil:
		return serving.ModelID{}, err
	case alloc.Job == nil:
		return serving.ModelID{}, ErrNoReplica
	}
	return serving.ModelID{Model: alloc.Job.Meta[jobs.MetaModel], Version: alloc.Job.Meta[jobs.MetaVersion]}, nil
}

// allocationID is a UUID. Nomad takes beginnings of one for an error of its own, and ids come from clients.
var allocationID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// allocation finds a replica of ours, also one that has ended, until Nomad collects it.
func (f *Fleet) allocation(ctx context.Context, id string) (*api.Allocation, error) {
	if !allocationID.MatchString(id) {
		return nil, ErrNoReplica
	}
	alloc, err := read(ctx, f, func(q *api.QueryOptions) (*api.Allocation, *api.QueryMeta, error) {
		return f.client.Allocations().Info(id, q)
	})
	switch {
	case status(err) == http.StatusNotFound:
		return nil, ErrNoReplica
	case err != nil:
		return nil, fmt.Errorf("replica %.8s: %s", id, said(err))
	case !strings.HasPrefix(alloc.JobID, jobs.Prefix) || alloc.TaskGroup != jobs.Group:
		return nil, ErrNoReplica // another job's
	case alloc.Namespace != cmp.Or(f.settings.Namespace, api.DefaultNamespace): // Nomad finds those of all namespaces
		return nil, ErrNoReplica
	}
	return alloc, nil
}
