package manage

import (
	"context"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/traffic"
)

// lastDecisions is how many decisions are looked through for each pool's last one.
const lastDecisions = 500

// Scheduler is what the scheduler says in its metrics and its journal.
type Scheduler struct {
	Traffic *traffic.Collector
	Catalog func() *serving.Catalog
	DryRun  bool // as this process is configured, and so all of them should be
	Journal interface {
		// Decisions lists the last ones, the newest first.
		Decisions(ctx context.Context, n int, about serving.ModelID) ([]serving.Decision, error)
	}
}

// Decisions implements api.Scheduler.
func (s Scheduler) Decisions(ctx context.Context, n int, about serving.ModelID) ([]serving.Decision, error) {
	return s.Journal.Decisions(ctx, n, about)
}

// Scheduler implements api.Scheduler.
func (s Scheduler) Scheduler(ctx context.Context) (api.SchedulerStatus, error) {
	status := api.SchedulerStatus{DryRun: s.DryRun, Pools: s.Traffic.Pools()}
	status.Leader, status.DemandUnknown = s.Traffic.Leader()
	if status.Pools == nil {
		status.Pools = []api.Pool{}
	}
	decided, err := s.Journal.Decisions(ctx, lastDecisions, serving.ModelID{})
	if err != nil {
		return api.SchedulerStatus{}, err
	}
	last := map[serving.ModelID]*serving.Decision{}
	for i, d := range decided {
		if last[d.ModelID] == nil {
			last[d.ModelID] = &decided[i]
		}
	}
	cat := s.Catalog()
	for i := range status.Pools {
		p := &status.Pools[i]
		id := serving.ModelID{Model: p.Model, Version: p.Version}
		p.Last = last[id]
		if v := cat.Version(id); v != nil {
			p.Pin = v.Pin
		}
	}
	return status, nil
}
