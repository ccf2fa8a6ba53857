package nomadfleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// Plan says in words what would happen if a version had as many replicas as it asks
// for, and what is missing for that. Nothing is changed.
func (f *Fleet) Plan(ctx context.Context, v *serving.Version, slo time.Duration) (string, error) {
	id := jobs.ID(v.ModelID)
	job, err := f.checked(ctx, jobs.Spec{Version: v, Count: max(v.Replicas, 1), SLO: slo, Settings: f.settings})
	if err != nil {
		return "", fmt.Errorf("job %s: %w", id, err)
	}
	plan, err := write(ctx, f, func(q *api.WriteOptions) (*api.JobPlanResponse, *api.WriteMeta, error) {
		return f.client.Jobs().Plan(job, false, q)
	})
	if err != nil {
		return "", refused(id, err)
	}
	return id + ": " + planWords(plan, job.TaskGroups[0]), nil
}

func planWords(plan *api.JobPlanResponse, group *api.TaskGroup) string {
	var parts []string
	add := func(n uint64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	missing := plan.FailedTGAllocs[jobs.Group]
	if missing != nil {
		add(uint64(missing.CoalescedFailures+1), "cannot start: "+placement(missing, needsOf(group)))
	}
	if u := plan.Annotations; u != nil && u.DesiredTGUpdates[jobs.Group] != nil {
		d := u.DesiredTGUpdates[jobs.Group]
		add(d.Place, "to start")
		add(d.Stop, "to stop")
		add(d.DestructiveUpdate, "to replace")
		add(d.InPlaceUpdate, "to update as they run")
		add(d.Ignore, "to leave as they are")
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}
