package nomadfleet

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
)

// LogQuery says which output to read.
type LogQuery struct {
	Task   string // jobs.Container when empty, or jobs.Sidecar
	Stderr bool   // else standard output
	Bytes  int64  // how much of the end, the first line of which may be cut; 0: all that Nomad has kept
	Follow bool   // until the replica ends, or ctx
}

// Logs is the output of a task of a replica, or of one that has ended, while Nomad keeps it. The caller closes it.
func (f *Fleet) Logs(ctx context.Context, replica string, query LogQuery) (io.ReadCloser, error) {
	alloc, err := f.allocation(ctx, replica)
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
	if query.Bytes > 0 {
		params["origin"], params["offset"] = "end", strconv.FormatInt(query.Bytes, 10)
	}
	body, err := withToken(&f.token, func(token string) (io.ReadCloser, error) {
		q := (&api.QueryOptions{AuthToken: token, Params: params}).WithContext(ctx)
		return f.client.Raw().Response("/v1/client/fs/logs/"+alloc.ID, q)
	})
	switch {
	case err != nil && strings.Contains(said(err), "Unknown allocation"): // its node has collected it
		return nil, ErrNoReplica
	case err != nil:
		return nil, fmt.Errorf("logs of replica %.8s: %s", alloc.ID, said(err))
	}
	return body, nil
}
