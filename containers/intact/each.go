package intact

import (
	"context"
	"runtime"
	"sync"
)

// each visits files, some at a time, until one fails or ctx ends.
func each(ctx context.Context, names []string, visit func(name string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan string)
	var all sync.WaitGroup
	for range max(4, runtime.GOMAXPROCS(0)) { // some wait for the disk
		all.Go(func() {
			for name := range next {
				if ctx.Err() != nil {
					continue
				}
				if err := visit(name); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}
