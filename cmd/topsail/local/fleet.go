package local

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"topsail/internal/demand"
	"topsail/internal/local"
	"topsail/internal/process"
	"topsail/serving"
	"topsail/sidecar"
)

// fleet runs the replicas that it is asked for. It is the twin of Nomad.
type fleet struct {
	ctx      context.Context // of all replicas
	catalog  func() *serving.Catalog
	dataDir  string
	guard    []string
	watch    bool // restart models when their source changes
	registry *local.Registry
	metrics  *sidecar.Metrics
	demand   *demand.Meter
	log      *slog.Logger

	mu      sync.Mutex // guards the following
	jobs    map[serving.ModelID]*job
	last    map[string]*member // by name: the one started last, until it has ended
	index   uint64             // of the last change
	running sync.WaitGroup     // replicas, those that are stopping included
}

// job is the replicas of one version, the oldest first.
type job struct {
	version *serving.Version
	index   uint64
	members []*member
}

// member is a replica with the goroutine that runs it.
type member struct {
	*replica
	stop context.CancelFunc
	done chan struct{}
}

// newFleet runs nothing yet. Its replicas run until ctx ends.
func newFleet(ctx context.Context, catalog func() *serving.Catalog) *fleet {
	return &fleet{ctx: ctx, catalog: catalog, jobs: map[serving.ModelID]*job{}, last: map[string]*member{}}
}

// Jobs lists the jobs by model and version.
func (f *fleet) Jobs(context.Context) ([]serving.Job, error) {
	cat := f.catalog()
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []serving.Job
	for id, j := range f.jobs {
		one := serving.Job{ModelID: id, Count: len(j.members), Index: j.index}
		for _, m := range j.members {
			switch problem, running := m.state(); {
			case running:
				one.Running++
			case problem != "":
				one.Problem = problem
			}
		}
		v := cat.Version(id)
		one.Outdated = v != nil && !sameReplica(v, j.version)
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b serving.Job) int { return a.ModelID.Compare(b.ModelID) })
	return list, nil
}

// SetCount starts and stops replicas of v, so that there are change.Count.
func (f *fleet) SetCount(_ context.Context, v *serving.Version, _ time.Duration, change serving.JobChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[v.ModelID]
	if j == nil {
		j = &job{version: v}
	}
	switch {
	case j.index != change.Index:
		return fmt.Errorf("%v: %w", v.ModelID, serving.ErrJobChanged)
	case change.Count < 0 || change.Count > serving.MaxReplicas:
		return fmt.Errorf("%v: %w: %d replicas are too many or too few", v.ModelID, serving.ErrJobRefused, change.Count)
	case f.ctx.Err() != nil:
		return context.Cause(f.ctx)
	}
	f.index++
	j.index = f.index
	f.jobs[v.ModelID] = j
	if !sameReplica(v, j.version) {
		for i, old := range j.members {
			old.stop()
			j.members[i] = f.start(f.replica(v, i))
		}
	}
	j.version = v
	for len(j.members) > change.Count {
		last := len(j.members) - 1
		j.members[last].stop()
		j.members = j.members[:last]
	}
	for len(j.members) < change.Count {
		j.members = append(j.members, f.start(f.replica(v, len(j.members))))
	}
	return nil
}

// Remove stops all replicas of a version.
func (f *fleet) Remove(_ context.Context, id serving.ModelID, change serving.JobChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[id]
	switch {
	case j == nil:
		return nil
	case j.index != change.Index:
		return fmt.Errorf("%v: %w", id, serving.ErrJobChanged)
	}
	for _, m := range j.members {
		m.stop()
	}
	delete(f.jobs, id)
	return nil
}

// wait returns when all replicas have ended, which they do after the fleet's context.
func (f *fleet) wait() { f.running.Wait() }

func (f *fleet) replica(v *serving.Version, index int) *replica {
	return &replica{
		name: replicaName(v.ModelID, index), model: v, index: index, logs: f.logs(), guard: f.guard,
		registry: f.registry, metrics: f.metrics, demand: f.demand, log: f.log,
	}
}

// sameReplica says whether a replica of one serves for the other: how many there
// are and what they are called does not matter to it.
func sameReplica(a, b *serving.Version) bool {
	x, y := *a, *b
	x.Replicas, x.Scale, x.Pin, x.Labels, x.Origin = y.Replicas, y.Scale, y.Pin, y.Labels, y.Origin
	return reflect.DeepEqual(x, y)
}

// start runs a replica, once the one before it of the same name has ended.
func (f *fleet) start(r *replica) *member {
	ctx, stop := context.WithCancel(f.ctx)
	m, before := &member{replica: r, stop: stop, done: make(chan struct{})}, f.last[r.name]
	f.last[r.name] = m
	f.running.Go(func() {
		defer close(m.done)
		defer f.forget(m)
		if before != nil {
			<-before.done
		}
		if ctx.Err() == nil {
			f.run(ctx, m)
		}
	})
	return m
}

func (f *fleet) run(ctx context.Context, m *member) {
	var watching sync.WaitGroup
	defer watching.Wait()
	defer m.stop() // the watching, too
	if f.watch {
		watching.Go(func() { watchSource(ctx, m.model, f.dataDir, m.log, m.restart) })
	}
	if err := m.replica.run(ctx); err != nil {
		m.log.Error("replica ended", "replica", m.name, "err", err)
	}
}

func (f *fleet) forget(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last[m.name] == m {
		delete(f.last, m.name)
	}
}

// logs is the folder for the containers' output.
func (f *fleet) logs() string { return filepath.Join(f.dataDir, "logs") }

// processes says how the containers' processes are doing, by replica.
func (f *fleet) processes() map[string]process.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]process.Snapshot{}
	for _, j := range f.jobs {
		for _, m := range j.members {
			if c := m.child.Load(); c != nil {
				all[m.name] = c.Snapshot()
			}
		}
	}
	return all
}

// names are the replicas' names, in order.
func (f *fleet) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := map[string]bool{}
	for _, j := range f.jobs {
		for _, m := range j.members {
			names[m.name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
