package nomadfleet

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
)

// Usage is what the container of a replica uses.
type Usage struct {
	Cores     float64 // of the last seconds
	Memory    int64   // bytes
	GPUMemory int64   // bytes of the memory of its GPUs, as NVIDIA's device plugin tells it
}

// Usage asks the node of a running replica what its container uses. It is zero where the task's
// driver measures nothing.
func (f *Fleet) Usage(ctx context.Context, replica string) (Usage, error) {
	all, err := read(ctx, f, func(q *api.QueryOptions) (*api.AllocResourceUsage, *api.QueryMeta, error) {
		usage, err := f.client.Allocations().Stats(&api.Allocation{ID: replica}, q)
		return usage, nil, err
	})
	if err != nil {
		return Usage{}, fmt.Errorf("usage of replica %.8s: %s", replica, said(err))
	}
	if task := all.Tasks[jobs.Container]; task != nil {
		return usageOf(task.ResourceUsage), nil
	}
	return Usage{}, nil
}

func usageOf(r *api.ResourceUsage) (u Usage) {
	if r == nil {
		return u
	}
	if r.CpuStats != nil {
		u.Cores = r.CpuStats.Percent / 100
	}
	if m := r.MemoryStats; m != nil {
		u.Memory = int64(cmp.Or(m.RSS, m.Usage))
	}
	for _, group := range r.DeviceStats {
		if group.Type != "gpu" {
			continue
		}
		for _, one := range group.InstanceStats {
			if s := one.Summary; s != nil && s.IntNumeratorVal != nil && s.Unit == "MiB" {
				u.GPUMemory += *s.IntNumeratorVal << 20
			}
		}
	}
	return u
}
