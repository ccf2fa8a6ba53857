package nomadfleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"

	"topsail/jobs"
	"topsail/serving"
)

// LogQuery says which output to read.
type LogQuery struct {
	Replica string // or what its name begins with; empty: the newest
	Task    string // jobs.Container when empty, or jobs.Sidecar
	Stderr  bool   // else standard output
	Follow  bool   // until the replica ends, or ctx
}

// Logs is the output of a task of a replica, from its beginning. The caller closes it.
func (f *Fleet) Logs(ctx context.Context, id serving.ModelID, query LogQuery) (io.ReadCloser, error) {
	alloc, err := f.replica(ctx, jobs.ID(id), query.Replica)
	if err != nil {
		return nil, err
	}
	params := map[string]string{
		"task": jobs.Container, "type": "stdout", "origin": "start", "offset": "0",
		"plain": "true", "follow": strconv.FormatBool(query.Follow),
	}
	if query.Task != "" {
		params["task"] = query.Task
	}
	if query.Stderr {
		params["type"] = "stderr"
	}
	body, err := withToken(&f.token, func(token string) (io.ReadCloser, error) {
		q := (&api.QueryOptions{AuthToken: token, Params: params}).WithContext(ctx)
		return f.client.Raw().Response("/v1/client/fs/logs/"+alloc.ID, q)
	})
	if err != nil {
		return nil, fmt.Errorf("logs of replica %.8s: %s", alloc.ID, said(err))
	}
	return body, nil
}

// replica is the newest replica of a job whose name begins so.
func (f *Fleet) replica(ctx context.Context, job, prefix string) (*api.AllocationListStub, error) {
	allocs, err := read(ctx, f, func(q *api.QueryOptions) ([]*api.AllocationListStub, *api.QueryMeta, error) {
		return f.client.Jobs().Allocations(job, false, q)
	})
	if err != nil {
		return nil, fmt.Errorf("replicas of job %s: %w", job, err)
	}
	var newest *api.AllocationListStub
	for _, a := range allocs {
		if strings.HasPrefix(a.ID, prefix) && (newest == nil || a.CreateIndex > newest.CreateIndex) {
			newest = a
		}
	}
	if newest == nil {
		return nil, errors.New("there is no such replica: the list of replicas names them")
	}
	return newest, nil
}
