package gocontainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/topsail-serving/topsail/serving"
)

// Stage is one step of a pipeline, and what its workers do. It takes from one source:
// the stage before it, or the one that After names.
type Stage struct {
	serving.Stage
	Predict Predict
}

// Drop is a Result's error that drops the query: it ends with the app's default, and
// with this reason.
type Drop string

func (d Drop) Error() string { return string(d) }

// stageWorker is where a worker announces that it works.
type stageWorker struct {
	stage    string
	pipeline []byte
	cpus     []int // on which it computes; none: any
}

// told is the stages with what the version says of their workers, CPUs, batches and queues, and of
// whether they are idempotent.
func told(stages []Stage, by serving.Pipeline) ([]Stage, error) {
	stages = slices.Clone(stages)
	for _, says := range by {
		i := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == says.Name })
		if i < 0 {
			return nil, fmt.Errorf("the version configures the stage %q, which this program does not have", says.Name)
		}
		s := &stages[i]
		s.Workers = cmp.Or(says.Workers, s.Workers)
		if len(says.CPUs) > 0 {
			s.CPUs, s.PerWorker = says.CPUs, says.PerWorker
		}
		s.Batch = cmp.Or(says.Batch, s.Batch)
		s.MaxQueue = cmp.Or(says.MaxQueue, s.MaxQueue)
		s.Idempotent = says.Idempotent || s.Idempotent
	}
	return stages, nil
}

// ServePipeline serves the stages of a model until ctx ends, as Serve does. Each worker
// is a goroutine with a connection of its own; those of a stage run side by side. One with CPUs computes on these (on
// Linux); goroutines that its Predict starts run on any.
func ServePipeline(ctx context.Context, cfg Config, stages ...Stage) error {
	stages, err := told(stages, cfg.Stages)
	if err != nil {
		return err
	}
	var pipeline serving.Pipeline
	for _, s := range stages {
		if len(s.After) > 1 {
			return fmt.Errorf("stage %q has %d inputs, and a stage in Go has one", s.Name, len(s.After))
		}
		pipeline = append(pipeline, s.Stage)
	}
	if err := pipeline.Check(); err != nil {
		return err
	}
	for _, s := range stages {
		tried := make(chan error)
		go func() { tried <- pin(s.CPUs) }() // whose thread ends with it
		if err := <-tried; err != nil {
			return fmt.Errorf("stage %q: %w", s.Name, err)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers sync.WaitGroup
	for _, s := range stages {
		for i := range max(1, s.Workers) {
			own := cfg
			own.stageWorker = stageWorker{s.Name, []byte(pipeline.JSON()), s.CPUsOf(i)}
			cfg.Metrics = nil // one worker reports them for the model
			workers.Go(func() {
				if err := Serve(ctx, own, s.Predict); err != nil {
					stop(err) // the sidecar refuses one: then the others are no use
				}
			})
		}
	}
	workers.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
