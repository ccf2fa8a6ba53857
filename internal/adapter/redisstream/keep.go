package redisstream

import (
	"context"
	"slices"
	"sync"
	"time"
)

// keeper has what is in flight stay the member's while it works on it, by saying so to
// Redis again and again. While Redis does not answer it tries on: whether the records are still
// the member's is for Commit to find.
type keeper struct {
	mu   sync.Mutex
	stop func() // nil: it does not run
}

// start has the keeper run, if it does not.
func (k *keeper) start(every time.Duration, keep func(ctx context.Context)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				keep(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	k.stop = func() {
		cancel()
		keeping.Wait()
	}
}

// end has the keeper stop.
func (k *keeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
}

// keep says once that the member works on what it has in flight.
func (c *Consumer) keep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c.alone.Lock()
	defer c.alone.Unlock()
	streams := c.flights.names()
	if len(streams) == 0 {
		return
	}
	keys, args := streams, []any{c.group.Name, c.group.Member, "", c.group.Takeover.Milliseconds()}
	for _, stream := range streams {
		ids := c.flights.ids(stream)
		args = append(args, len(ids))
		for _, id := range ids {
			args = append(args, id)
		}
	}
	if c.group.Ordered {
		args[2] = c.leases.token
		keys = append(slices.Clip(keys), c.leases.of(streams)...)
	}
	if answer, err := c.scripts.keep.Run(ctx, c.client, keys, args...).Result(); err == nil {
		_ = c.lose(streams, answer) // an answer of another kind says nothing
	}
}
