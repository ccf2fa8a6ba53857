package nomadfleet

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// register makes the job what spec says, if it still is as in d; nil: if there is none.
func (f *Fleet) register(ctx context.Context, spec jobs.Spec, d *detail) error {
	id := jobs.ID(spec.Version.ModelID)
	job, err := f.checked(ctx, spec)
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	if f.bundles != nil && spec.Count > 0 && jobs.FetchesBundles(spec.Version) {
		if err := f.bundles(ctx); err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
	}
	opt := &api.RegisterOptions{EnforceIndex: true}
	if d != nil {
		opt.ModifyIndex = d.index
	}
	_, err = write(ctx, f, func(q *api.WriteOptions) (*api.JobRegisterResponse, *api.WriteMeta, error) {
		return f.client.Jobs().RegisterOpts(job, opt, q)
	})
	return refused(id, err)
}

// roll replaces the replicas of a job by new ones, and has Nomad go back to the job
// as it is now when those do not get healthy. Without replicas nothing is rolled.
func (f *Fleet) roll(ctx context.Context, spec jobs.Spec, d *detail) error {
	if err := f.checkIdle(ctx, d); err != nil {
		return err
	}
	spec.Rolling = spec.Count > 0 && d.count > 0
	if spec.Rolling && !d.stable {
		if err := f.markStable(ctx, d); err != nil {
			return err
		}
	}
	return f.register(ctx, spec, d)
}

// adjust changes what of a job can change while its replicas run on.
func (f *Fleet) adjust(ctx context.Context, spec jobs.Spec, d *detail) error {
	if err := f.checkIdle(ctx, d); err != nil {
		return err
	}
	return f.register(ctx, spec, d)
}

// checkIdle fails while the job is rolled out.
func (f *Fleet) checkIdle(ctx context.Context, d *detail) error {
	if !d.rolling {
		return nil
	}
	active, err := f.activeDeployments(ctx)
	if err != nil {
		return err
	}
	if active[jobs.ID(d.id)] != nil {
		return fmt.Errorf("job %s: %w: a rollout is running", jobs.ID(d.id), serving.ErrJobBlocked)
	}
	return nil
}

// markStable says that Nomad may go back to the job as it is, which it knows only of jobs that
// came by a deployment.
func (f *Fleet) markStable(ctx context.Context, d *detail) error {
	job := jobs.ID(d.id)
	_, err := write(ctx, f, func(q *api.WriteOptions) (*api.JobStabilityResponse, *api.WriteMeta, error) {
		return f.client.Jobs().Stable(job, d.version, true, q)
	})
	return refused(job, err)
}

// checked is the job that spec says, which Nomad has found valid. An error for one that is not wraps serving.ErrJobRefused.
func (f *Fleet) checked(ctx context.Context, spec jobs.Spec) (*api.Job, error) {
	job, err := jobs.Make(spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", serving.ErrJobRefused, err)
	}
	return job, f.validate(ctx, job)
}

// validate has Nomad check a job. Registering one that is not valid is answered with 500, as if a retry could succeed.
func (f *Fleet) validate(ctx context.Context, job *api.Job) error {
	answer, err := write(ctx, f, func(q *api.WriteOptions) (*api.JobValidateResponse, *api.WriteMeta, error) {
		return f.client.Jobs().Validate(job, q)
	})
	switch {
	case err != nil:
		return invalid(err)
	case answer.Error != "" || len(answer.ValidationErrors) > 0:
		return fmt.Errorf("%w: %s", serving.ErrJobRefused, strings.Join(append(answer.ValidationErrors, answer.Error), "; "))
	}
	return nil
}
