// Package cache holds predictions by what was asked: a cache bounded in bytes,
// and the flights of questions that are being answered, so that equal questions
// in flight are asked once.
package cache

import (
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/topsail-serving/topsail/serving"
)

// Cache holds outputs. All methods may be called by any goroutine.
type Cache struct {
	outputs *otter.Cache[Key, entry]
	epoch   time.Time
	flights flights
}

type entry struct {
	output *serving.Output
	stored time.Duration // since the cache's epoch
}

// entryOverhead is the memory that an entry needs beside its output: the key, the
// entry, and the cache's own node and policies.
const entryOverhead = 160

// New makes a cache of at most so many bytes; 0 keeps nothing, and still joins
// equal questions.
func New(bytes int64) *Cache {
	c := &Cache{epoch: time.Now()}
	c.flights.init()
	if bytes > 0 {
		c.outputs = otter.Must(&otter.Options[Key, entry]{
			MaximumWeight: uint64(bytes),
			Weigher:       func(_ Key, e entry) uint32 { return uint32(e.output.Bytes() + entryOverhead) },
			// The caller of Put evicts. A goroutine would be later, and until then many times
			// the bytes can pile up when outputs are large.
			Executor: func(evict func()) { evict() },
		})
	}
	return c
}

// Close ends the cache's own goroutines.
func (c *Cache) Close() {
	if c.outputs != nil {
		c.outputs.StopAllGoroutines()
	}
}

// Get finds an output not older than maxAge (0: of any age), or nil.
func (c *Cache) Get(k Key, maxAge time.Duration) *serving.Output {
	if c.outputs == nil {
		return nil
	}
	e, ok := c.outputs.GetIfPresent(k)
	if !ok || (maxAge > 0 && time.Since(c.epoch)-e.stored > maxAge) {
		return nil
	}
	return e.output
}

// Put stores an output.
func (c *Cache) Put(k Key, out *serving.Output) {
	if c.outputs != nil {
		c.outputs.Set(k, entry{out, time.Since(c.epoch)})
	}
}

// Bytes is the memory that the entries hold.
func (c *Cache) Bytes() int64 {
	if c.outputs == nil {
		return 0
	}
	return int64(c.outputs.WeightedSize())
}

// Len is the number of entries, roughly.
func (c *Cache) Len() int {
	if c.outputs == nil {
		return 0
	}
	return c.outputs.EstimatedSize()
}
