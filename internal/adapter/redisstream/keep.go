package redisstream

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// keep has the polled records stay the member's while it works on them, by saying so to
// Redis again and again, until the function that it returns is called. While Redis does
// not answer it tries on: whether the records are still the member's is for Commit to find.
func (c *Consumer) keep() (stop func()) {
	keys, args := c.holdings()
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() {
		ticks := time.NewTicker(c.group.Takeover / 4)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
			call, end := context.WithTimeout(ctx, callTimeout)
			answer, err := c.scripts.keep.Run(call, c.client, keys, args...).Text()
			end()
			if err == nil && answer == lost {
				return
			}
		}
	})
	return func() {
		cancel()
		keeping.Wait()
	}
}

// holdings is what the script is given.
func (c *Consumer) holdings() (keys []string, args []any) {
	keys = slices.Sorted(maps.Keys(c.polled))
	args = []any{c.group.Name, c.group.Member, "", c.group.Takeover.Milliseconds()}
	for _, stream := range keys {
		ids := c.polled[stream]
		args = append(args, ids[0], ids[len(ids)-1], len(ids))
	}
	if c.group.Ordered {
		args[2] = c.leases.token
		keys = append(keys, c.leases.of(keys)...)
	}
	return keys, args
}

// forget lets go of the polled records.
func (c *Consumer) forget() {
	if c.polled != nil {
		c.polled = nil
		c.stopKeeping()
	}
}
