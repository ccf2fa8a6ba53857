package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/batch"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// pool is one model version in this sidecar.
type pool struct {
	id      uint32 // on connections with gateways
	model   *serving.Version
	limits  queue.Limits
	metrics *poolMetrics
	changed func(*pool) // called when the state may have changed
	began   time.Time

	host     *host     // nil: the model is none
	resident *resident // of a host; nil: it is one of the versions that the sidecar was made for

	learners learners // the containers that take feedback
	places   places   // of its containers

	waiting  atomic.Int64 // accepted and not yet answered
	parked   atomic.Int64 // bytes of outputs of stages that wait for others, to be joined
	draining atomic.Bool

	mu   sync.Mutex // serialises changes of pipe
	pipe atomic.Pointer[pipeline]
}

func newPool(id uint32, model *serving.Version, limits queue.Limits, metrics *poolMetrics, changed func(*pool)) *pool {
	return (&pool{id: id, model: model, limits: limits, metrics: metrics, changed: changed, began: time.Now()}).prepare()
}

// prepare gives a pool the pipeline that it has until a container announces another.
func (p *pool) prepare() *pool {
	p.install(whole(p.model.Batch))
	return p
}

// install makes pipe the pool's pipeline.
func (p *pool) install(pipe *pipeline) {
	for i, s := range pipe.stages {
		s.room, s.refuse, s.changed = pipe.room(i), p.refuse, func() { p.changed(p) }
		s.observer, s.ran = p.metrics, p.metrics.ran
		if p.resident != nil {
			s.observer = p.resident
		}
		if pipe.text != "" {
			s.metrics = p.metrics.stages.observe(p, s)
			s.observer = s.metrics
		}
		if pipe.enters(i) {
			limits := p.limits
			limits.Items = min(limits.Items, cmp.Or(s.MaxQueue, limits.Items))
			s.queue = queue.New(limits, func(it *queue.Item, ahead queue.Load) error { return admit(pipe, i, it, ahead) }, pipe.went(i))
		} else {
			s.queue = queue.New(unbounded, func(*queue.Item, queue.Load) error { return s.open() }, pipe.went(i))
		}
		s.queue.Displaced = func(it *queue.Item) { p.refuse(it, rpc.StatusFull, queue.ErrFull) }
	}
	p.pipe.Store(pipe)
}

// stageOf is where a worker that announces a stage works; text is the pipeline that
// it announces. Workers of another pipeline, or of none, must be gone.
func (p *pool) stageOf(name, text string) (*stage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pipe := p.pipe.Load()
	if pipe.text != text {
		next, err := parsePipeline(p.model.Batch, text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the container announces %v with an invalid pipeline: %w", p.model.ModelID, err)
		case !pipe.idle():
			return nil, fmt.Errorf("the container announces %v with other stages than its connected containers: these must end first", p.model.ModelID)
		}
		p.metrics.stages.forget(p.metrics.own)
		p.install(next)
		pipe = next
	}
	for _, s := range pipe.stages {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("the container announces %v with the stage %q, which is not in its pipeline", p.model.ModelID, name)
}

// errReplaced ends a worker whose pipeline has made way for another one.
var errReplaced = errors.New("the stages of the model have changed")

// serve runs batches of a stage on one worker until ctx ends or the worker is lost,
// and returns why.
func (p *pool) serve(ctx context.Context, s *stage, w worker) error {
	if !p.attach(s) {
		return errReplaced
	}
	defer p.detach(s)
	return s.serve(ctx, w)
}

// attach counts a worker of a stage, for as long as which the pipeline stays. It says
// whether the stage is still one of the pool's.
func (p *pool) attach(s *stage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.pipe.Load().stages, s) {
		return false
	}
	s.workers++
	return true
}

func (p *pool) detach(s *stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.workers--
}

// parsePipeline makes the pipeline that a container announces.
func parsePipeline(spec serving.BatchSpec, text string) (*pipeline, error) {
	if text == "" {
		return whole(spec), nil
	}
	stages, err := serving.ParsePipeline([]byte(text))
	if err != nil {
		return nil, err
	}
	return newPipeline(text, stages), nil
}

// state is what gateways get.
func (p *pool) state() rpc.State {
	switch {
	case p.resident != nil && p.resident.leaving.Load():
		return rpc.StateGone
	case p.draining.Load():
		return rpc.StateDraining
	case p.pipe.Load().ready() && (p.resident == nil || p.resident.since.Load() != 0):
		return rpc.StateReady
	}
	return rpc.StateLoading
}

func (p *pool) announcement() rpc.Announcement {
	return rpc.Announcement{ID: p.id, State: p.state(), InputType: p.model.InputType, InputLength: p.model.InputLength, Model: p.model.ModelID, Generation: p.model.Generation}
}

// errLeaving refuses queries of a replica that stops, or of a version that its host
// unloads.
var errLeaving = errors.New("the replica is unloading the model")

// submit queues an item, which wake then has started, or answers it with the reason why not.
func (p *pool) submit(it *queue.Item) {
	p.waiting.Add(1)
	if p.resident != nil {
		p.resident.used.Store(it.Arrived.UnixNano())
	}
	if p.draining.Load() {
		p.refuse(it, rpc.StatusDraining, errLeaving)
		return
	}
	var err error
	if pipe := p.pipe.Load(); pipe.text == "" {
		err = pipe.stages[0].queue.Push(it)
	} else {
		err = pipe.enter(p, it)
	}
	if err != nil {
		p.refuse(it, refusal(err), err)
		return
	}
	p.metrics.demand.Admitted()
}

// wake starts what can start of what was submitted.
func (p *pool) wake() {
	if pipe := p.pipe.Load(); pipe.text == "" { // else its stages see to that
		pipe.stages[0].wake()
	}
}

func (p *pool) refuse(it *queue.Item, status rpc.Status, why error) {
	p.metrics.Dropped(status)
	it.Refuse(status, why.Error())
}

// admit is the admission of the queue of stage i: it refuses an item that would be answered after
// its deadline. An idle worker is always tried, whatever the estimate says, because only a try can
// correct a wrong estimate.
func admit(pipe *pipeline, i int, it *queue.Item, ahead queue.Load) error {
	if it.Again {
		return pipe.stages[i].open()
	}
	if !pipe.ready() {
		return errNoContainer
	}
	if it.Deadline.IsZero() {
		return nil
	}
	wait, service := pipe.estimate(it.Arrived, i, it, ahead)
	budget := it.Deadline.Sub(it.Arrived) - pipe.stages[i].others(it.Arrived, it.Priority, it.Deadline)
	if wait > 0 && wait+service > margin(budget) {
		return fmt.Errorf("%w\nit would wait %v and take %v", queue.ErrLate, wait.Round(100*time.Microsecond), service.Round(100*time.Microsecond))
	}
	return nil
}

// margin is what of a budget may be planned with. A queue that is admitted up to
// the last moment answers a moment too late: the way back takes its time, and so
// do the batches that take longer than estimated.
func margin(budget time.Duration) time.Duration { return budget - budget/8 }

// cancel ends the queries that match: those in the queues, and those that a container runs side by
// side.
func (p *pool) cancel(match func(*queue.Item) bool) {
	p.remove(match, rpc.StatusCancelled, batch.ErrCancelled)
	for _, s := range p.pipe.Load().stages {
		s.cancel(match)
	}
}

// remove takes the queries that match, asked by from, out of the queues, and answers
// them with what befell them.
func (p *pool) remove(match func(*queue.Item) bool, status rpc.Status, why error) {
	for _, s := range p.pipe.Load().stages {
		for _, it := range s.queue.Remove(func(it *queue.Item) bool { return match(asked(it)) }) {
			p.refuse(it, status, why)
		}
	}
}

// asked is the query that an item stands for.
func asked(it *queue.Item) *queue.Item {
	if f, ok := it.From.(*flow); ok {
		return f.query
	}
	return it
}

// load is what replies to queries of a priority report: how many wait, and what a new one of the same would wait.
func (p *pool) load(priority int) (queued int, wait time.Duration) {
	pipe := p.pipe.Load()
	now := time.Now()
	wait, _ = pipe.estimate(now, 0, nil, pipe.stages[0].queue.Waiting(priority))
	return pipe.waiting(), wait + pipe.stages[0].others(now, priority, time.Time{})
}

// profile is what demand reports say that the pool takes: of a pipeline, its slowest
// stage.
func (p *pool) profile() serving.LatencyLine {
	_, line := p.pipe.Load().slowest()
	return line
}

// drain admits no more queries.
func (p *pool) drain() {
	p.draining.Store(true)
	p.changed(p)
}

// answered says that everything accepted was answered.
func (p *pool) answered() bool { return p.waiting.Load() == 0 }
