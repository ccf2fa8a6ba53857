package nomadfleet

import (
	"context"
	"fmt"
	"net/http"

	"github.com/hashicorp/nomad/api"
)

// failure says why the newest replica failed that failed and is not replaced yet;
// empty when there is none.
func (f *Fleet) failure(ctx context.Context, job string) (string, error) {
	allocs, err := read(ctx, f, func(q *api.QueryOptions) ([]*api.AllocationListStub, *api.QueryMeta, error) {
		return f.client.Jobs().Allocations(job, false, q)
	})
	switch {
	case status(err) == http.StatusNotFound: // purged since it was listed
		return "", nil
	case err != nil:
		return "", fmt.Errorf("replicas of job %s: %w", job, err)
	}
	var newest *api.AllocationListStub
	for _, a := range allocs {
		open := a.ClientStatus == api.AllocClientStatusFailed && a.NextAllocation == "" && a.DesiredStatus == api.AllocDesiredStatusRun
		if open && (newest == nil || a.ModifyTime > newest.ModifyTime) {
			newest = a
		}
	}
	if newest == nil {
		return "", nil
	}
	return fmt.Sprintf("replica %.8s failed: %s", newest.ID, whyFailed(newest)), nil
}

// whyFailed is what the tasks of a replica say, the one that failed first.
func whyFailed(a *api.AllocationListStub) string {
	text, first := a.ClientDescription, int64(0)
	for name, state := range a.TaskStates {
		if !state.Failed {
			continue
		}
		for _, event := range state.Events {
			if words := eventWords(event); words != "" && (first == 0 || state.FinishedAt.UnixNano() <= first) {
				text, first = "the "+name+" "+words, state.FinishedAt.UnixNano()
			}
		}
	}
	return text
}

// eventWords is an event that can end a task; empty for the others.
func eventWords(e *api.TaskEvent) string {
	switch e.Type {
	case api.TaskTerminated:
		if e.ExitCode == 0 && e.Signal == 0 {
			return "ended on its own"
		}
		if e.Signal != 0 {
			return fmt.Sprintf("was ended by signal %d", e.Signal)
		}
		return fmt.Sprintf("ended with exit code %d", e.ExitCode)
	case api.TaskArtifactDownloadFailed:
		return "did not get an artifact: " + e.DisplayMessage
	case api.TaskDriverFailure:
		return "could not be started: " + e.DisplayMessage
	case api.TaskSetupFailure, api.TaskFailedValidation:
		return "could not be set up: " + e.DisplayMessage
	}
	return ""
}
