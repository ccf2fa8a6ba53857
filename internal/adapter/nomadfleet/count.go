package nomadfleet

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// SetCount makes the number of replicas of a version what the change asks for: it
// registers the job where there is none, rolls it out anew where it is outdated, and
// else leaves the replicas that run alone. slo is the longest of the apps that use
// the version. Errors wrap serving.ErrJobBlocked, ErrJobChanged or
// ErrJobRefused where they are that.
func (f *Fleet) SetCount(ctx context.Context, v *serving.Version, slo time.Duration, change serving.JobChange) error {
	id := jobs.ID(v.ModelID)
	if change.Count < 0 || change.Count > serving.MaxReplicas {
		return fmt.Errorf("job %s: %w: %d replicas; use 0 to %d", id, serving.ErrJobRefused, change.Count, serving.MaxReplicas)
	}
	defer f.changing.lock(id)()
	d, err := f.asLookedAt(ctx, id, change)
	if err != nil {
		return err
	}
	spec := jobs.Spec{Version: v, Count: change.Count, SLO: slo, Settings: f.settings}
	hash, err := jobs.Hash(spec)
	if err != nil {
		return fmt.Errorf("job %s: %w: %w", id, serving.ErrJobRefused, err)
	}
	switch {
	case d == nil || d.stopped:
		return f.register(ctx, spec, d)
	case d.redefines(v):
		return f.register(ctx, spec, d) // at once: no gateway asks what it runs, and Nomad gives up a rollout of that
	case d.takenBack != "":
		return f.scale(ctx, id, jobs.Group, change) // what it is, it stays
	case d.spec != hash:
		return f.roll(ctx, spec, d)
	case d.rolling || d.shutdownDelay != jobs.ShutdownDelay(slo) || d.killTimeout != jobs.KillTimeout(f.settings):
		return f.adjust(ctx, spec, d)
	}
	return f.scale(ctx, id, jobs.Group, change)
}

// Remove stops the job of a version, if there is one. Nomad keeps its history for
// a while.
func (f *Fleet) Remove(ctx context.Context, id serving.ModelID, change serving.JobChange) error {
	job := jobs.ID(id)
	defer f.changing.lock(job)()
	d, err := f.asLookedAt(ctx, job, change)
	if err != nil || d == nil || d.stopped {
		return err
	}
	_, err = write(ctx, f, func(q *api.WriteOptions) (string, *api.WriteMeta, error) {
		return f.client.Jobs().Deregister(job, false, q)
	})
	return refused(job, err)
}

// asLookedAt reads a job and compares it with the one that a change was decided for.
func (f *Fleet) asLookedAt(ctx context.Context, job string, change serving.JobChange) (*detail, error) {
	d, err := f.current(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", job, err)
	}
	index := uint64(0)
	if d != nil && !d.stopped {
		index = d.index
	}
	if index != change.Index {
		return nil, fmt.Errorf("job %s: %w: it is at index %d, not %d", job, serving.ErrJobChanged, index, change.Index)
	}
	return d, nil
}

// scale changes the count and nothing else.
func (f *Fleet) scale(ctx context.Context, job, group string, change serving.JobChange) error {
	count := int64(change.Count)
	_, err := write(ctx, f, func(q *api.WriteOptions) (*api.JobRegisterResponse, *api.WriteMeta, error) {
		return f.client.Jobs().ScaleWithRequest(job, &api.ScalingRequest{
			Count: &count, Target: map[string]string{"Job": job, "Group": group},
			Message: change.Reason, JobModifyIndex: change.Index,
		}, q)
	})
	return refused(job, err)
}

// ScaleService sets the count of a group of another job, such as that of the gateways.
func (f *Fleet) ScaleService(ctx context.Context, job, group string, count int, reason string) error {
	return f.scale(ctx, job, group, serving.JobChange{Count: count, Reason: reason})
}
