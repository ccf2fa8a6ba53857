package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/web/api"
)

const (
	usageEvery  = 2 * time.Second
	usagesEach  = 8               // replicas that are looked at each time: their nodes are asked
	usageFresh  = 5 * time.Second // a replica is not asked for more often
	usageWithin = time.Second
)

// usages are what replicas use, as of some seconds ago; with very many of them, minutes.
type usages struct {
	ask func(ctx context.Context, replica string) (nomadfleet.Usage, error)

	mu    sync.Mutex // guards what follows
	known map[string]used
}

type used struct {
	nomadfleet.Usage
	at time.Time // when it was asked for, with success or not
}

// follow asks until ctx ends.
func (u *usages) follow(ctx context.Context, running func() []nomadfleet.Replica) {
	tick := time.NewTicker(usageEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			u.look(ctx, running(), time.Now())
		}
	}
}

// look asks about those that run and have waited longest, and forgets those that are gone.
func (u *usages) look(ctx context.Context, list []nomadfleet.Replica, now time.Time) {
	var stale []string
	u.mu.Lock()
	known := make(map[string]used, len(list))
	for _, r := range list {
		if r.State != nomadfleet.Running {
			continue
		}
		known[r.ID] = u.known[r.ID]
		if now.Sub(known[r.ID].at) >= usageFresh {
			stale = append(stale, r.ID)
		}
	}
	u.known = known
	u.mu.Unlock()
	slices.SortFunc(stale, func(a, b string) int { return known[a].at.Compare(known[b].at) }) // only look writes to it
	for _, id := range stale[:min(len(stale), usagesEach)] {
		asking, cancel := context.WithTimeout(ctx, usageWithin)
		usage, err := u.ask(asking, id)
		cancel()
		if err != nil {
			usage = nomadfleet.Usage{} // unknown
		}
		u.mu.Lock()
		known[id] = used{usage, now}
		u.mu.Unlock()
	}
}

// fill adds what a replica uses.
func (u *usages) fill(r *api.Replica) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.known[r.ID]
	r.CPU, r.Memory, r.GPUMemory = one.Cores, one.Memory, one.GPUMemory
}
