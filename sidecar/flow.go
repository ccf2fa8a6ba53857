package sidecar

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// flow is one query on its way through the stages of a pipeline. It is the asker of
// the items that stand for the query in the queues of stages, each of which has the
// number of its stage as its index, and it answers the query once.
type flow struct {
	pool  *pool
	pipe  *pipeline
	query *queue.Item // as the gateway asked

	mu      sync.Mutex // guards the following
	values  [][][]byte // by stage and slot: the payloads that have come
	parked  int        // bytes of those that are outputs
	open    int        // items that stand for the query
	stages  []byte     // how it fared at those that have put out, as answers carry it
	service time.Duration
	ended   bool
}

// enter begins the way of a query, or says why it cannot begin.
func (pipe *pipeline) enter(p *pool, query *queue.Item) error {
	if p.parked.Load() >= int64(between.Bytes) {
		return queue.ErrFull
	}
	f := &flow{pool: p, pipe: pipe, query: query, values: make([][][]byte, len(pipe.stages))}
	for _, t := range pipe.entered() {
		if err := f.give(t, query.Ask.Payload); err != nil {
			if !f.end() {
				return nil // it was answered, for what befell it at another stage
			}
			f.withdraw()
			return err
		}
	}
	return nil
}

// Answer implements queue.Asker: a worker answered an item of the query, or it was
// refused.
func (f *flow) Answer(it *queue.Item, a *rpc.Answer) {
	i := int(it.Index)
	last := i == len(f.pipe.stages)-1
	if !a.More {
		f.pipe.stages[i].metrics.ended(a.Status)
	}
	switch {
	case a.Status == rpc.StatusContainer && f.retry(it):
		return
	case a.Status != rpc.StatusOK:
		f.fail(it, a.Status, string(a.Message))
	case last:
		f.succeed(it, a)
	case a.More:
		f.fail(it, rpc.StatusModelError, "it answers in parts, which only the last stage may do")
	default:
		f.pass(it, a)
	}
}

// pass hands the output of a stage to those that take it.
func (f *flow) pass(it *queue.Item, a *rpc.Answer) {
	f.mu.Lock()
	f.open--
	f.service += it.Service
	if !f.ended { // else the query is answered, with what had come by then
		f.leaves(it, false)
	}
	f.mu.Unlock()
	payload := slices.Clone(a.Payload)
	for _, t := range f.pipe.taking[it.Index] {
		if err := f.give(t, payload); err != nil {
			f.fail(f.item(t.by, nil), refusal(err), err.Error())
			return
		}
	}
}

// leaves notes how long an item was at its stage. f.mu is held.
func (f *flow) leaves(it *queue.Item, ended bool) {
	f.stages = rpc.AppendStageTime(f.stages, rpc.StageTime{Name: []byte(f.pipe.stages[it.Index].Name), Ended: ended, Took: time.Since(it.Arrived)})
}

// give fills a slot of a stage, and queues the query there when it was the last one.
func (f *flow) give(t take, payload []byte) error {
	f.mu.Lock()
	if f.ended {
		f.mu.Unlock()
		return nil
	}
	sources, slots := f.pipe.sources[t.by], f.values[t.by]
	if slots == nil {
		slots = make([][]byte, len(sources))
		f.values[t.by] = slots
	}
	had := outputs(sources, slots)
	slots[t.slot] = payload
	complete := !slices.ContainsFunc(slots, func(b []byte) bool { return b == nil })
	if complete {
		f.values[t.by] = nil
		f.open++
		f.park(-had)
	} else {
		f.park(outputs(sources, slots) - had)
	}
	f.mu.Unlock()
	if !complete {
		return nil
	}
	joined := slots[0]
	if len(slots) > 1 {
		var err error
		if joined, err = rpc.JoinPayloads(sources, slots); err != nil {
			return err
		}
	}
	return f.pipe.stages[t.by].push(f.item(t.by, joined))
}

// outputs are the bytes in slots that stages put out. The query's input is held in any
// case.
func outputs(sources []string, slots [][]byte) (n int) {
	for i, b := range slots {
		if sources[i] != serving.QueryInput {
			n += len(b)
		}
	}
	return n
}

// park counts bytes of outputs that wait for others, or that wait no longer. f.mu is held.
func (f *flow) park(n int) {
	if n != 0 {
		f.parked += n
		f.pool.parked.Add(int64(n))
	}
}

// item stands for the query at stage i. It is due as much earlier than the query as
// the stages behind it take at least, and the stages on its way share the time that
// is left evenly.
func (f *flow) item(i int, payload []byte) *queue.Item {
	now := time.Now()
	it := &queue.Item{Class: f.query.Class, Arrived: now, Ask: f.query.Ask, Index: uint32(i), From: f}
	it.Ask.Payload = payload
	if !f.query.Deadline.IsZero() {
		it.Deadline, it.Behind = f.query.Deadline, f.pipe.behind(now, i)
		it.Share = f.query.Deadline.Sub(now) / time.Duration(f.pipe.hops[i])
	}
	return it
}

// retry gives the input of a worker that died to another one, once, where the stage
// allows that. It says whether it did.
func (f *flow) retry(it *queue.Item) bool {
	s := f.pipe.stages[it.Index]
	if !s.Idempotent || it.Again {
		return false
	}
	f.mu.Lock()
	ended := f.ended
	f.mu.Unlock()
	if ended {
		return false
	}
	second := f.item(int(it.Index), it.Ask.Payload)
	second.Again = true
	return s.push(second) == nil
}

// succeed answers the query with the output of the last stage.
func (f *flow) succeed(it *queue.Item, a *rpc.Answer) {
	if a.More {
		f.query.Answer(a)
		return
	}
	if f.endAt(it, false) {
		f.query.Service, a.Stages = f.service+it.Service, f.stages
		f.query.Answer(a)
	}
}

// fail ends the query with what befell it at a stage. Its items elsewhere go.
func (f *flow) fail(it *queue.Item, status rpc.Status, message string) {
	if !f.endAt(it, true) {
		return
	}
	text := fmt.Sprintf("stage %s: %s", f.pipe.stages[it.Index].Name, message)
	f.query.Answer(&rpc.Answer{Status: status, Message: []byte(text), Stages: f.stages})
	f.withdraw()
}

// endAt is end, at the stage of an item: there with an output, or without.
func (f *flow) endAt(it *queue.Item, without bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.finish()
	if first {
		f.leaves(it, without)
	}
	return first
}

// end says whether the query was still unanswered, and marks it answered.
func (f *flow) end() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.finish()
}

// finish is end where f.mu is held. All queries come by here once, and leave nothing
// parked.
func (f *flow) finish() bool {
	if f.ended {
		return false
	}
	f.ended, f.values = true, nil
	f.park(-f.parked)
	return true
}

// withdraw takes the items of a query that has ended out of the queues.
func (f *flow) withdraw() {
	f.mu.Lock()
	elsewhere := f.open > 1
	f.mu.Unlock()
	if !elsewhere {
		return
	}
	for _, s := range f.pipe.stages {
		s.queue.Remove(func(it *queue.Item) bool { return it.From == f })
	}
}

// refusal is the status of an error of a queue.
func refusal(err error) rpc.Status {
	switch {
	case errors.Is(err, queue.ErrFull):
		return rpc.StatusFull
	case errors.Is(err, queue.ErrLate):
		return rpc.StatusLate
	case errors.Is(err, errNoContainer):
		return rpc.StatusNoContainer
	}
	return rpc.StatusContainer
}
