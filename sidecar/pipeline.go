package sidecar

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// between bounds what waits between two stages. A stage whose outputs would go
// beyond it rests; what then gathers before it rests the one before, and so on up to
// the admission of queries. Its bytes bound the outputs that wait for others, too, at
// admission alone: a stage that rested because of them could be the one that they wait
// for.
var between = queue.Limits{Items: serving.StageQueue, Bytes: 64 << 20}

// unbounded is for queues whose producers bound them.
var unbounded = queue.Limits{Items: math.MaxInt, Bytes: math.MaxInt}

// pipeline is the way of a query through the stages of a pool. Its structure does
// not change; workers come and go.
type pipeline struct {
	text    string // as its workers announce it; empty: the model has no stages
	stages  []*stage
	sources [][]string // by stage: whose outputs it takes
	taking  [][]take   // by stage: the stages that take its output
	hops    []int      // by stage: the stages on the longest way from it to the answer, itself included
}

// take is one stage taking the output of another.
type take struct {
	by   int // the stage
	slot int // where the value stands among those that it takes
}

// whole is the pipeline of a model without stages.
func whole(spec serving.BatchSpec) *pipeline {
	return &pipeline{stages: []*stage{newStage(serving.Stage{}, spec)}, sources: [][]string{{serving.QueryInput}}, taking: make([][]take, 1), hops: []int{1}}
}

// newPipeline lays out the stages of p, which is sound.
func newPipeline(text string, p serving.Pipeline) *pipeline {
	n := len(p)
	pipe := &pipeline{text: text, taking: make([][]take, n), hops: make([]int, n)}
	index := map[string]int{}
	for i, s := range p {
		pipe.stages = append(pipe.stages, newStage(s, s.Batch.Spec()))
		pipe.sources = append(pipe.sources, p.Sources(i))
		for slot, from := range pipe.sources[i] {
			if from != serving.QueryInput {
				pipe.taking[index[from]] = append(pipe.taking[index[from]], take{i, slot})
			}
		}
		index[s.Name] = i
	}
	for i := n - 1; i >= 0; i-- {
		pipe.hops[i] = 1
		for _, t := range pipe.taking[i] {
			pipe.hops[i] = max(pipe.hops[i], 1+pipe.hops[t.by])
		}
	}
	return pipe
}

// entered are the slots that the query's input fills.
func (pipe *pipeline) entered() (list []take) {
	for i := range pipe.stages {
		for slot, from := range pipe.sources[i] {
			if from == serving.QueryInput {
				list = append(list, take{i, slot})
			}
		}
	}
	return list
}

// enters says whether stage i takes the query's input and nothing else, so that its
// queue is where queries are admitted.
func (pipe *pipeline) enters(i int) bool {
	return len(pipe.sources[i]) == 1 && pipe.sources[i][0] == serving.QueryInput
}

// ready says whether every stage has a worker.
func (pipe *pipeline) ready() bool {
	return !slices.ContainsFunc(pipe.stages, func(s *stage) bool { return !s.staffed() })
}

// idle says whether no stage has one, not even one that finishes its last batch.
func (pipe *pipeline) idle() bool {
	return !slices.ContainsFunc(pipe.stages, func(s *stage) bool { return s.workers > 0 })
}

// waiting is how many inputs wait in all queues.
func (pipe *pipeline) waiting() (n int) {
	for _, s := range pipe.stages {
		n += s.queue.Len()
	}
	return n
}

// room says whether every stage that takes from stage i can take more. If not, the stage is woken when that may
// have changed.
func (pipe *pipeline) room(i int) func() bool {
	if len(pipe.taking[i]) == 0 {
		return nil
	}
	s := pipe.stages[i]
	return func() bool {
		s.blocked.Store(true) // first: what goes from here on wakes it
		for _, t := range pipe.taking[i] {
			if by := pipe.stages[t.by]; !by.queue.Below(queue.Limits{Items: cmp.Or(by.MaxQueue, between.Items), Bytes: between.Bytes}) {
				return false
			}
		}
		s.blocked.Store(false)
		return true
	}
}

// went wakes the stages that wait for stage i to take more.
func (pipe *pipeline) went(i int) func() {
	var before []*stage
	for j, s := range pipe.stages {
		if slices.ContainsFunc(pipe.taking[j], func(t take) bool { return t.by == i }) {
			before = append(before, s)
		}
	}
	if before == nil {
		return nil
	}
	return func() {
		for _, s := range before {
			if s.blocked.Load() && s.blocked.CompareAndSwap(true, false) {
				s.wakeSoon()
			}
		}
	}
}

// estimate is how long a query that enters at stage i as it, or as a usual one if that is nil, with so much ahead of it
// there, would wait for batches, and how long these would take, on the longest way.
func (pipe *pipeline) estimate(now time.Time, i int, it *queue.Item, ahead queue.Load) (wait, service time.Duration) {
	wait, service = pipe.stages[i].estimate(now, it, ahead)
	if len(pipe.taking[i]) == 0 {
		return wait, service
	}
	waits := make([]time.Duration, len(pipe.stages)) // behind each stage
	services := make([]time.Duration, len(pipe.stages))
	for j := len(pipe.stages) - 1; j >= i; j-- {
		for _, t := range pipe.taking[j] {
			s := pipe.stages[t.by]
			w, r := s.estimate(now, nil, s.queue.Waiting(serving.LowestPriority))
			if w, r = w+waits[t.by], r+services[t.by]; w+r > waits[j]+services[j] {
				waits[j], services[j] = w, r
			}
		}
	}
	return wait + waits[i], service + services[i]
}

// behind is what one input takes at least behind stage i, on the longest way.
func (pipe *pipeline) behind(now time.Time, i int) time.Duration {
	if len(pipe.taking[i]) == 0 {
		return 0
	}
	longest := make([]time.Duration, len(pipe.stages))
	for j := len(pipe.stages) - 1; j >= i; j-- {
		for _, t := range pipe.taking[j] {
			longest[j] = max(longest[j], pipe.stages[t.by].alone(now)+longest[t.by])
		}
	}
	return longest[i]
}

// slowest is the stage that bounds what the pipeline can do, and what it takes as if
// it were a single worker.
func (pipe *pipeline) slowest() (s *stage, line serving.LatencyLine) {
	for _, candidate := range pipe.stages {
		l, workers := candidate.line()
		if workers > 1 && pipe.text != "" {
			l.Base /= time.Duration(workers)
			l.PerInput /= time.Duration(workers)
		}
		if s == nil || l.Took(1) > line.Took(1) {
			s, line = candidate, l
		}
	}
	return s, line
}
