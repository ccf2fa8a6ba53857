package local

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"topsail/internal/local"
	"topsail/internal/process"
	"topsail/serving"
	"topsail/sidecar"
)

// fleet keeps the replicas of all model versions as the catalog wants them. It is
// the twin of Nomad.
type fleet struct {
	dataDir  string
	guard    []string
	watch    bool // restart models when their source changes
	registry *local.Registry
	metrics  *sidecar.Metrics
	log      *slog.Logger

	mu      sync.Mutex // guards the following
	members map[string]*member
}

// member is a replica with the goroutine that runs it.
type member struct {
	*replica
	stop context.CancelFunc
	done chan struct{}
}

// run follows the catalog until ctx ends, then stops all replicas and waits for
// them.
func (f *fleet) run(ctx context.Context, catalog interface {
	Watch(context.Context, func(*serving.Catalog)) error
}) error {
	err := catalog.Watch(ctx, func(cat *serving.Catalog) { f.reconcile(ctx, cat) })
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.members))
	f.mu.Unlock()
	for _, m := range all {
		m.stop()
	}
	for _, m := range all {
		<-m.done
	}
	return err
}

// reconcile stops replicas that are not wanted, or not as they are, and starts
// those that are missing.
func (f *fleet) reconcile(ctx context.Context, cat *serving.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted := map[string]*replica{}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			for i := range v.Replicas {
				r := f.replica(v, i)
				wanted[r.name] = r
			}
		}
	}
	for name, m := range f.members {
		if r := wanted[name]; r == nil || !sameReplica(r.model, m.model) {
			m.stop()
			if r == nil {
				delete(f.members, name)
			}
		}
	}
	for name, r := range wanted {
		old := f.members[name]
		if old == nil || !sameReplica(r.model, old.model) {
			f.members[name] = f.start(ctx, r, old)
		}
	}
}

func (f *fleet) replica(v *serving.Version, index int) *replica {
	name := replicaName(v.ModelID, index)
	return &replica{
		name: name, model: v, index: index, logs: f.logs(), guard: f.guard,
		registry: f.registry, metrics: f.metrics, log: f.log,
	}
}

// sameReplica says whether a replica of one serves for the other: the number of
// replicas and the labels do not matter to it.
func sameReplica(a, b *serving.Version) bool {
	x, y := *a, *b
	x.Replicas, x.Labels, x.Origin = y.Replicas, y.Labels, y.Origin
	return reflect.DeepEqual(x, y)
}

// start runs a replica, once the one before it of the same name has ended.
func (f *fleet) start(ctx context.Context, r *replica, before *member) *member {
	ctx, stop := context.WithCancel(ctx)
	m := &member{replica: r, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		if before != nil {
			<-before.done
		}
		if ctx.Err() != nil {
			return
		}
		var watching sync.WaitGroup
		defer watching.Wait()
		if f.watch {
			watching.Go(func() { watchSource(ctx, r.model, f.dataDir, r.log, r.restart) })
		}
		err := r.run(ctx)
		stop() // the watching, too
		if err != nil {
			r.log.Error("replica ended", "replica", r.name, "err", err)
		}
	}()
	return m
}

// logs is the folder for the containers' output.
func (f *fleet) logs() string { return filepath.Join(f.dataDir, "logs") }

// processes says how the containers' processes are doing, by replica.
func (f *fleet) processes() map[string]process.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]process.Snapshot{}
	for name, m := range f.members {
		if c := m.child.Load(); c != nil {
			all[name] = c.Snapshot()
		}
	}
	return all
}
