package local

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/nvidia"
	"github.com/topsail-serving/topsail/internal/process"
	"github.com/topsail-serving/topsail/web/api"
)

// usageEvery is how often it is looked what replicas use.
const usageEvery = 5 * time.Second

// usage is what the replicas' processes use, as of a short time ago.
type usage struct {
	fleet *fleet
	now   atomic.Pointer[map[int]used] // by the process id of the container
}

// used is what a replica uses.
type used struct {
	process.Usage
	cores float64
	gpu   int64 // bytes of GPUs' memory
}

// follow looks until ctx ends.
func (u *usage) follow(ctx context.Context) error {
	tick := time.NewTicker(usageEvery)
	defer tick.Stop()
	for at := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		next := time.Now()
		u.look(ctx, next.Sub(at))
		at = next
	}
}

// look measures, a time after it did before.
func (u *usage) look(ctx context.Context, since time.Duration) {
	var pids []int
	gpus := false
	for _, m := range u.fleet.members() {
		if c := m.child.Load(); c != nil {
			if pid := c.Snapshot().PID; pid != 0 {
				pids = append(pids, pid)
				gpus = gpus || m.model.Resources.GPU.Count > 0
			}
		}
	}
	var memory map[int]int64
	if gpus {
		memory, _ = nvidia.MemoryByProcess(ctx) // why it cannot be told, the replicas say that wait for GPUs
	}
	before := u.before()
	all := make(map[int]used, len(pids))
	for pid, now := range process.Usages(pids) {
		one := used{Usage: now}
		if was, there := before[pid]; there && since > 0 {
			one.cores = max(0, (now.CPU-was.CPU).Seconds()/since.Seconds())
		}
		for _, p := range now.Processes {
			one.gpu += memory[p]
		}
		all[pid] = one
	}
	u.now.Store(&all)
}

func (u *usage) before() map[int]used {
	if now := u.now.Load(); now != nil {
		return *now
	}
	return nil
}

// fill adds what a replica uses.
func (u *usage) fill(r *api.Replica) {
	if one, there := u.before()[r.PID]; there {
		r.CPU, r.Memory, r.GPUMemory = one.cores, one.Memory, one.gpu
	}
}
