package nomadfleet

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// detail is what of a job changes only with its index.
type detail struct {
	id      serving.ModelID
	index   uint64
	version uint64 // of the job
	stopped bool
	stable  bool // Nomad may go back to it
	count   int

	spec       string // hash of what makes a replica
	generation string // of the version
	outdated   bool   // by how jobs are made, and settings
	takenBack  string // why an update to how jobs are made now was taken back; empty: it was not
	rolling    bool   // a change of the job is a deployment

	shutdownDelay, killTimeout time.Duration
	needs                      needs
}

// current reads a job as it is now; nil when there is none, or no longer.
func (f *Fleet) current(ctx context.Context, job string) (*detail, error) {
	found, err := read(ctx, f, func(q *api.QueryOptions) (*api.Job, *api.QueryMeta, error) { return f.client.Jobs().Info(job, q) })
	switch {
	case status(err) == http.StatusNotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	d := f.newDetail(found)
	if !d.outdated {
		return d, nil
	}
	d.takenBack, err = f.takenBack(ctx, job)
	switch {
	case status(err) == http.StatusNotFound: // purged since it was read
		return nil, nil
	case err != nil:
		return nil, err
	}
	return d, nil
}

func (f *Fleet) newDetail(job *api.Job) *detail {
	d := &detail{
		id:    serving.ModelID{Model: job.Meta[jobs.MetaModel], Version: job.Meta[jobs.MetaVersion]},
		index: *job.JobModifyIndex, version: *job.Version, stopped: *job.Stop, stable: *job.Stable,
		spec: job.Meta[jobs.MetaSpec], outdated: !f.makes(job.Meta),
	}
	for _, group := range job.TaskGroups {
		if *group.Name != jobs.Group {
			continue
		}
		d.count = *group.Count
		d.rolling = group.Update != nil && *group.Update.MaxParallel > 0
		if group.ShutdownDelay != nil {
			d.shutdownDelay = *group.ShutdownDelay
		}
		for _, task := range group.Tasks {
			d.killTimeout = *task.KillTimeout
			if task.Name == jobs.Sidecar {
				d.generation = jobs.GenerationIn(task.Env)
			}
		}
		d.needs = needsOf(group)
	}
	return d
}

// redefines says whether v is another definition than the job was made of, whose replicas gateways no longer ask.
func (d *detail) redefines(v *serving.Version) bool {
	return d.generation != v.Generation
}

// makes says whether a job with this meta was made as jobs are made now, with the present settings. A version is
// immutable, so that nothing else matters.
func (f *Fleet) makes(meta map[string]string) bool {
	return meta[jobs.MetaGeneration] == strconv.Itoa(jobs.Generation) && meta[jobs.MetaSettings] == f.settings.Hash()
}

// takenBack says why Nomad has taken back an update of a job to how jobs are made now; empty when it has not.
func (f *Fleet) takenBack(ctx context.Context, job string) (string, error) {
	deployments, err := read(ctx, f, func(q *api.QueryOptions) ([]*api.Deployment, *api.QueryMeta, error) {
		return f.client.Jobs().Deployments(job, false, q)
	})
	if err != nil {
		return "", err
	}
	failed := map[uint64]string{}
	for _, d := range deployments {
		if d.Status == api.DeploymentStatusFailed {
			failed[d.JobVersion] = d.StatusDescription
		}
	}
	if len(failed) == 0 {
		return "", nil
	}
	versions, err := read(ctx, f, func(q *api.QueryOptions) ([]*api.Job, *api.QueryMeta, error) {
		list, _, meta, err := f.client.Jobs().Versions(job, false, q)
		return list, meta, err
	})
	if err != nil {
		return "", err
	}
	for _, v := range versions {
		if why := failed[*v.Version]; why != "" && f.makes(v.Meta) {
			return why, nil
		}
	}
	return "", nil
}
