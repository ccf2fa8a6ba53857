package local

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/containers/bundlecache"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/adapter/nvidia"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// fleet runs the replicas that it is asked for. It is the twin of Nomad.
type fleet struct {
	ctx         context.Context // of all replicas, which stop ends
	stop        context.CancelFunc
	catalog     func() *serving.Catalog
	dataDir     string
	guard       []string                   // the command that guards child processes
	runtime     []string                   // the command that runs a bundle, without which
	bundles     func(digest string) string // where a bundle is
	bundleCache *bundlecache.Cache         // of the bundles that hosts load
	watch       bool                       // make a new generation of models whose source changes
	renew       func(context.Context, serving.Definition) error
	gpus        *nvidia.Pool
	registry    *inprocess.Registry
	local       *rpc.Local
	metrics     *sidecar.Metrics
	demand      *demand.Meter
	log         *slog.Logger

	replaceWithin time.Duration

	mu      sync.Mutex // guards the following
	jobs    map[serving.ModelID]*job
	names   map[string]*member // replicas that have not ended
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
	ctx    context.Context // ends when it is to go
	stop   context.CancelFunc
	before *member // which it replaces, until that has been stopped; else nil
}

// newFleet runs nothing yet. Its replicas run until Run ends.
func newFleet(catalog func() *serving.Catalog) *fleet {
	ctx, stop := context.WithCancel(context.Background())
	return &fleet{ctx: ctx, stop: stop, catalog: catalog, jobs: map[serving.ModelID]*job{}, names: map[string]*member{}, gpus: nvidia.NewPool(nvidia.List), replaceWithin: time.Minute}
}

// Jobs lists the jobs by model and version.
func (f *fleet) Jobs(ctx context.Context) ([]serving.Job, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	cat := f.catalog()
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []serving.Job
	for id, j := range f.jobs {
		one := serving.Job{ModelID: id, Count: len(j.members), Index: j.index}
		for _, m := range j.members {
			problem, running := m.state()
			if running || m.before.runs() {
				one.Running++
			} else if problem != "" {
				one.Problem = problem
			}
		}
		v := cat.Version(id)
		one.Redefined = v != nil && !sameReplica(v, j.version)
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b serving.Job) int { return a.ModelID.Compare(b.ModelID) })
	return list, nil
}

// SetCount starts and stops replicas of v until it has change.Count.
func (f *fleet) SetCount(ctx context.Context, v *serving.Version, _ time.Duration, change serving.JobChange) error {
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
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case f.ctx.Err() != nil:
		return context.Cause(f.ctx)
	}
	f.index++
	j.index = f.index
	f.jobs[v.ModelID] = j
	if !sameReplica(v, j.version) {
		f.replace(j, v)
	}
	j.version = v
	for len(j.members) > change.Count {
		last := len(j.members) - 1
		j.members[last].stop()
		j.members = j.members[:last]
	}
	for len(j.members) < change.Count {
		j.members = append(j.members, f.start(v))
	}
	return nil
}

// Remove stops all replicas of a version.
func (f *fleet) Remove(ctx context.Context, id serving.ModelID, change serving.JobChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[id]
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
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

// Run lets replicas run until ctx ends, and waits for them to end.
func (f *fleet) Run(ctx context.Context) error {
	<-ctx.Done()
	f.stop()
	f.running.Wait()
	return nil
}

// replace starts a replica of v for each there is, and stops the old ones when the
// new ones are ready, are not within replaceWithin, or lack the GPUs that the old ones have.
func (f *fleet) replace(j *job, v *serving.Version) {
	for i := range j.members {
		f.replaceOne(j, i, v)
	}
}

func (f *fleet) replaceOne(j *job, i int, v *serving.Version) {
	old, next := j.members[i], f.start(v)
	j.members[i] = next
	if old.model.Generation != v.Generation { // it is not asked any more
		old.stop()
		return
	}
	next.before = old
	f.running.Go(func() {
		defer f.replaced(next)
		select {
		case <-next.serving:
		case <-next.crowded:
		case <-time.After(f.replaceWithin):
		case <-f.ctx.Done():
		}
	})
}

// replaced stops the replica that next stands in for.
func (f *fleet) replaced(next *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next.before.stop()
	next.before = nil
}

// sameReplica says whether a replica of one serves for the other: how many there
// are and what they are called does not matter to it.
func sameReplica(a, b *serving.Version) bool {
	x, y := *a, *b
	x.Description, x.Labels, x.Origin, x.Deployed, x.Prepared = y.Description, y.Labels, y.Origin, y.Deployed, y.Prepared
	x.Replicas, x.Scale, x.Pin = y.Replicas, y.Scale, y.Pin
	return reflect.DeepEqual(x, y)
}

// start runs a replica under the first name that is free.
func (f *fleet) start(v *serving.Version) *member {
	index := 0
	for f.names[replicaName(v.ModelID, index)] != nil {
		index++
	}
	r := &replica{
		name: replicaName(v.ModelID, index), model: v, index: index, logs: f.logs(), guard: f.guard, runtime: f.runtime, bundles: f.bundles, bundleCache: f.bundleCache,
		gpus: f.gpus, registry: f.registry, local: f.local, metrics: f.metrics, demand: f.demand, log: f.log, crowded: make(chan struct{}), serving: make(chan struct{}),
	}
	if v.Container.Listens() {
		r.port = f.freePort()
	}
	ctx, stop := context.WithCancel(f.ctx)
	m := &member{replica: r, ctx: ctx, stop: stop}
	f.names[r.name] = m
	f.running.Go(func() {
		defer f.forget(m)
		f.run(ctx, m)
	})
	return m
}

func (f *fleet) run(ctx context.Context, m *member) {
	var watching sync.WaitGroup
	defer watching.Wait()
	defer m.stop() // the watching, too
	if f.watch {
		w := newSourceWatch(m.model, f.dataDir, f.renew, m.log) // of the source that the container is about to read
		watching.Go(func() { w.run(ctx) })
	}
	if err := m.replica.run(ctx); err != nil {
		m.log.Error("replica ended", "replica", m.name, "err", err)
	}
}

func (f *fleet) forget(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.names, m.name)
}

// logs is the folder for the containers' output.
func (f *fleet) logs() string { return filepath.Join(f.dataDir, "logs") }

// members are the replicas that have not ended.
func (f *fleet) members() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.names))
}

// drain replaces the replica of a name, and says whether there is one.
func (f *fleet) drain(named func(string) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.jobs {
		for i, m := range j.members {
			if named(m.name) {
				f.replaceOne(j, i, j.version)
				return true
			}
		}
	}
	return false
}

// count is how many replicas a version is to have.
func (f *fleet) count(id serving.ModelID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if j := f.jobs[id]; j != nil {
		return len(j.members)
	}
	return 0
}

// Containers listen below the ports that systems give to connections, which could else have
// taken a container's port when it is started anew. Nomad takes the same.
const firstPort, lastPort = 20000, 32000

// freePort is a port on which nothing listens, and no other replica's container will.
func (f *fleet) freePort() string {
	taken := map[string]bool{}
	for _, m := range f.names {
		taken[m.port] = true
	}
	for range lastPort - firstPort {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort))
		if taken[port] {
			continue
		}
		if ln, err := net.Listen("tcp", net.JoinHostPort("", port)); err == nil {
			ln.Close()
			return port
		}
	}
	return "0" // which no container takes: its replica is never ready
}
