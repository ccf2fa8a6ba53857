package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/scheduler"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

var (
	line = serving.LatencyLine{Base: 12 * time.Millisecond, PerInput: 2 * time.Millisecond} // 380/s within slo
	slo  = 100 * time.Millisecond
	each = 380.0
	m1   = serving.ModelID{Model: "m", Version: "1"}
	m2   = serving.ModelID{Model: "m", Version: "2"}
)

// world is everything around a scheduler: it runs the replicas that are asked for,
// and counts what they are asked. It stands in for every seam.
type world struct {
	*testing.T
	s    *scheduler.Scheduler
	reg  *obs.Registry
	stop func() // ends the term and waits for it

	valid atomic.Bool
	fence uint64

	mu        sync.Mutex // guards what follows
	cat       *serving.Catalog
	newCat    chan struct{} // closed with every new catalog
	jobs      map[serving.ModelID]*fakeJob
	index     uint64
	start     time.Duration                                     // from asking for a replica to its readiness
	late      time.Duration                                     // from the end of a second until its reports are seen
	load      map[serving.ModelID]func(second time.Time) uint64 // arrivals
	answered  []serving.ModelID                                 // versions for which a sidecar says that a container answered
	mute      time.Time                                         // since when no gateway reports; zero: they do
	unmute    time.Time                                         // until then they did not
	deaf      error                                             // what reading demand fails with
	lists     error                                             // what listing jobs fails with
	listing   time.Duration                                     // how long a list of jobs is on its way
	set       func(ctx context.Context, id serving.ModelID) error
	served    error         // what SetServing fails with
	serving   time.Duration // how long it takes
	notes     int           // how often it was asked for
	reverts   bool          // jobs stay outdated, and redefined
	wakes     chan serving.ModelID
	calls     []call
	decisions []serving.Decision
	hints     chan struct{}
}

type fakeJob struct {
	serving.Job
	ready []time.Time // when each replica is ready
}

// call is a change that was asked for.
type call struct {
	at    time.Time
	id    serving.ModelID
	count int // -1: remove
	slo   time.Duration
}

// in runs a test in a bubble with a world whose time starts at a whole second.
func in(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			T: t, reg: obs.NewRegistry(), fence: 7, cat: &serving.Catalog{}, newCat: make(chan struct{}),
			jobs: map[serving.ModelID]*fakeJob{}, load: map[serving.ModelID]func(time.Time) uint64{},
			start: time.Second, late: 50 * time.Millisecond,
			wakes: make(chan serving.ModelID), hints: make(chan struct{}),
		}
		w.valid.Store(true)
		test(w)
		if w.stop != nil {
			w.stop()
		}
	})
}

// lead makes a scheduler and has it lead.
func (w *world) lead(change ...func(*scheduler.Config)) {
	cfg := scheduler.Config{
		Name: "s1", Catalog: w, Fleet: w, Demand: w, Replicas: replicas{w}, Wakes: w, Hints: w,
		Journals: []scheduler.Journal{w}, Metrics: w.reg, Log: slog.New(slog.NewTextHandler(w.Output(), nil)),
	}
	for _, c := range change {
		c(&cfg)
	}
	w.s = scheduler.New(cfg)
	w.again()
}

// again leads for another term.
func (w *world) again() {
	ctx, cancel := context.WithCancel(w.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.s.Run(ctx, w); err != nil {
			w.Errorf("run: %v", err)
		}
	})
	w.stop = func() { cancel(); wg.Wait(); w.stop = nil }
}

func (w *world) Valid() bool   { return w.valid.Load() }
func (w *world) Fence() uint64 { return w.fence }

func (w *world) newJob(id serving.ModelID, count int, start time.Duration) *fakeJob {
	w.index++
	return &fakeJob{Job: serving.Job{ModelID: id, Index: w.index, Count: count}, ready: slices.Repeat([]time.Time{time.Now().Add(start)}, count)}
}

// Watch is of the catalog.
func (w *world) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	for {
		w.mu.Lock()
		cat, news := w.cat, w.newCat
		w.mu.Unlock()
		update(cat)
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *world) ApplyFenced(_ context.Context, c catalog.Change, fence uint64) (*serving.Catalog, error) {
	time.Sleep(w.serving)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes++
	if fence != w.fence {
		w.Errorf("fence %d, want %d", fence, w.fence)
	}
	if w.served != nil {
		return nil, w.served
	}
	err := w.applyLocked(c)
	return w.cat, err
}

func (w *world) Jobs(context.Context) ([]serving.Job, error) {
	var all []serving.Job
	var err error
	w.lock(func() {
		for _, id := range w.names() {
			all = append(all, w.jobs[id].Job)
		}
		err = w.lists
	})
	time.Sleep(w.listing)
	return all, err
}

func (w *world) names() []serving.ModelID {
	return slices.SortedFunc(maps.Keys(w.jobs), func(a, b serving.ModelID) int {
		return slices.Compare([]string{a.Model, a.Version}, []string{b.Model, b.Version})
	})
}

func (w *world) SetCount(ctx context.Context, v *serving.Version, slo time.Duration, change serving.JobChange) error {
	return w.do(ctx, call{time.Now(), v.ModelID, change.Count, slo}, change.Index)
}

func (w *world) Remove(ctx context.Context, id serving.ModelID, change serving.JobChange) error {
	return w.do(ctx, call{time.Now(), id, -1, 0}, change.Index)
}

func (w *world) do(ctx context.Context, c call, index uint64) error {
	w.mu.Lock()
	w.calls = append(w.calls, c)
	set := w.set
	w.mu.Unlock()
	if set != nil {
		if err := set(ctx, c.id); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	job := w.jobs[c.id]
	if job == nil {
		job = &fakeJob{}
	}
	if job.Index != index {
		return fmt.Errorf("index %d, not %d: %w", job.Index, index, serving.ErrJobChanged)
	}
	if c.count < 0 {
		delete(w.jobs, c.id)
		return nil
	}
	next := w.newJob(c.id, c.count, w.start)
	copy(next.ready, job.ready)
	next.Outdated, next.Redefined = w.reverts && job.Outdated, w.reverts && job.Redefined
	w.jobs[c.id] = next
	return nil
}

// readyNow is how many replicas are ready; w.mu is held.
func (w *world) readyNow(id serving.ModelID) int {
	n := 0
	if job := w.jobs[id]; job != nil {
		for _, at := range job.ready {
			if !at.After(time.Now()) {
				n++
			}
		}
	}
	return n
}

// ReadDemand makes up the reports of two gateways and a sidecar of each version.
func (w *world) ReadDemand(ctx context.Context, from, to time.Time) ([]serving.DemandReport, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf != nil {
		return nil, w.deaf
	}
	var all []serving.DemandReport
	for s := from; s.Before(to) && (w.mute.IsZero() || s.Before(w.mute)); s = s.Add(time.Second) {
		if s.Before(w.unmute) {
			continue
		}
		if s.Add(time.Second + w.late).After(time.Now()) {
			break
		}
		g1 := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: "g1"}, Second: s}
		g2 := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: "g2"}, Second: s}
		for id, load := range w.load {
			n := load(s)
			g1.Demands = append(g1.Demands, serving.Demand{ModelID: id, Arrivals: n / 2})
			g2.Demands = append(g2.Demands, serving.Demand{ModelID: id, Arrivals: n - n/2})
		}
		all = append(all, g1, g2)
		for _, id := range w.answered {
			all = append(all, serving.DemandReport{Source: serving.DemandSource{Role: "sidecar", Name: "host"}, Second: s, Demands: []serving.Demand{{ModelID: id, Batches: 1, Inputs: 1}}})
		}
		for id := range w.jobs {
			if w.readyNow(id) > 0 {
				all = append(all, serving.DemandReport{Source: serving.DemandSource{Role: "sidecar", Name: id.String()}, Second: s, Demands: []serving.Demand{{ModelID: id, Profile: line}}})
			}
		}
	}
	return all, nil
}

func (w *world) Wakes(ctx context.Context, wake func(serving.ModelID)) error {
	for {
		select {
		case id := <-w.wakes:
			wake(id)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *world) Changes(ctx context.Context, changed func()) error {
	for {
		select {
		case <-w.hints:
			changed()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *world) AddDecision(_ context.Context, d serving.Decision) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decisions = append(w.decisions, d)
	return nil
}

// replicas watches the ready ones, as a registry with checks every 100 ms.
type replicas struct{ w *world }

func (r replicas) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	for last := []serving.Endpoint(nil); ; {
		var list []serving.Endpoint
		r.w.lock(func() {
			for _, id := range r.w.names() {
				for i := range r.w.readyNow(id) {
					list = append(list, serving.Endpoint{Replica: fmt.Sprint(id, i), Ready: true, Models: []serving.Definition{{ModelID: id}}})
				}
			}
		})
		if last == nil || len(list) != len(last) {
			update(list)
		}
		last = list
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errAway = errors.New("away")
