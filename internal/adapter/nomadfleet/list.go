package nomadfleet

import (
	"context"
	"fmt"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// Jobs lists the jobs of model versions that are not stopped. It is one call of
// Nomad as long as all of them run as asked for and none has changed.
func (f *Fleet) Jobs(ctx context.Context) ([]serving.Job, error) {
	stubs, err := f.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	seen, err := f.refresh(ctx, stubs)
	if err != nil {
		return nil, err
	}
	state := look{fleet: f, stubs: stubs, details: seen}
	if err := state.further(ctx); err != nil {
		return nil, err
	}
	all := make([]serving.Job, 0, len(stubs))
	for _, stub := range stubs {
		if d := seen[stub.ID]; d != nil {
			all = append(all, state.job(stub, d))
		}
	}
	return all, nil
}

// list is the jobs that are ours and not stopped.
func (f *Fleet) list(ctx context.Context) ([]*api.JobListStub, error) {
	stubs, err := read(ctx, f, func(q *api.QueryOptions) ([]*api.JobListStub, *api.QueryMeta, error) {
		q.Prefix = jobs.Prefix
		return f.client.Jobs().ListOptions(&api.JobListOptions{Fields: &api.JobListFields{Meta: true}}, q)
	})
	ours := stubs[:0]
	for _, stub := range stubs {
		id := serving.ModelID{Model: stub.Meta[jobs.MetaModel], Version: stub.Meta[jobs.MetaVersion]}
		if !stub.Stop && stub.ID == jobs.ID(id) {
			ours = append(ours, stub)
		}
	}
	return ours, err
}

// refresh reads the jobs that have changed since the last time. One that has gone
// meanwhile is not in the result.
func (f *Fleet) refresh(ctx context.Context, stubs []*api.JobListStub) (map[string]*detail, error) {
	f.mu.Lock()
	known := f.details
	f.mu.Unlock()
	details := make(map[string]*detail, len(stubs))
	for _, stub := range stubs {
		d := known[stub.ID]
		if d == nil || d.index != stub.JobModifyIndex {
			var err error
			if d, err = f.current(ctx, stub.ID); err != nil {
				return nil, fmt.Errorf("job %s: %w", stub.ID, err)
			}
		}
		if d != nil && !d.stopped {
			details[stub.ID] = d
		}
	}
	f.mu.Lock()
	f.details = details
	f.mu.Unlock()
	return details, nil
}
