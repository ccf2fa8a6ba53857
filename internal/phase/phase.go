// Package phase runs the parts of a process side by side, and ends them one phase after another, so that what
// others need outlives them.
package phase

import (
	"context"
	"errors"
	"sync"
)

// Job is a part of a process. It runs until its context ends, finishes what it has under way, and returns; one that has
// nothing more to do may return nil earlier.
type Job func(ctx context.Context) error

// Phase is jobs whose contexts end at the same time.
type Phase []Job

// Run runs all jobs until ctx ends or one of them fails. Then it ends the phases in their order, each when all jobs of
// those before have returned. It returns the errors of all jobs, but for those that the end of their contexts is.
func Run(ctx context.Context, phases ...Phase) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		mu   sync.Mutex
		errs []error
	)
	fails := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
		stop()
	}
	before := ctx.Done()
	for _, phase := range phases {
		before = run(context.WithoutCancel(ctx), before, phase, fails)
	}
	<-before
	return errors.Join(errs...)
}

// run runs the jobs of a phase until what is before it has ended, and closes ended when they have returned.
func run(ctx context.Context, before <-chan struct{}, phase Phase, fails func(error)) (ended <-chan struct{}) {
	ctx, end := context.WithCancel(ctx)
	var jobs sync.WaitGroup
	for _, job := range phase {
		jobs.Go(func() {
			if err := job(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
				fails(err)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		<-before
		end()
		jobs.Wait()
	}()
	return over
}
