package scheduler

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// Catalog knows what is registered.
type Catalog interface {
	// Watch calls update with whole snapshots, at once and then whenever it
	// changes, until ctx ends.
	Watch(ctx context.Context, update func(*serving.Catalog)) error
	// ApplyFenced makes a change, unless a later term than that of fence has begun.
	ApplyFenced(ctx context.Context, change catalog.Change, fence uint64) (*serving.Catalog, error)
}

// Fleet runs replicas. A job belongs to a version, and has its name.
type Fleet interface {
	// Jobs lists all jobs, those of unknown versions too, best in a stable order.
	Jobs(ctx context.Context) ([]serving.Job, error)
	// SetCount makes the job of a version, or changes its count. slo is the longest
	// of the apps that use the version, 0 for none. Its errors wrap
	// serving.ErrJobBlocked, ErrJobChanged or ErrJobRefused where one of them fits.
	SetCount(ctx context.Context, v *serving.Version, slo time.Duration, change serving.JobChange) error
	// Remove ends a job and forgets it, with the same errors.
	Remove(ctx context.Context, id serving.ModelID, change serving.JobChange) error
}

// Demand remembers what processes reported.
type Demand interface {
	// ReadDemand returns the reports of the seconds in [from, to). What is missing is
	// unknown.
	ReadDemand(ctx context.Context, from, to time.Time) ([]serving.DemandReport, error)
}

// Replicas knows where replicas are, and which of them are ready.
type Replicas interface {
	// Watch calls update with the whole list, at once and then whenever it changes,
	// until ctx ends.
	Watch(ctx context.Context, update func([]serving.Endpoint)) error
}

// Wakes passes on what gateways ask for.
type Wakes interface {
	// Wakes calls wake, until ctx ends, for every version that has queries and no ready replica,
	// repeatedly as long as that is so.
	Wakes(ctx context.Context, wake func(serving.ModelID)) error
}

// Hints tell that the jobs should be looked at before the next second.
type Hints interface {
	// Changes calls changed when jobs may have changed, until ctx ends.
	Changes(ctx context.Context, changed func()) error
}

// Journal keeps decisions.
type Journal interface {
	AddDecision(ctx context.Context, d serving.Decision) error
}

// Term is the leadership that a scheduler acts under.
type Term interface {
	// Valid says whether it still leads, without a request.
	Valid() bool
	// Fence is a number that is greater in every later term.
	Fence() uint64
}
