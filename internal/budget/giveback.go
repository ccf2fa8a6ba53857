package budget

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	lookEvery = 15 * time.Second
	// worthwhile is from how much memory on the system is given back what is not needed: to find
	// it takes a collection.
	worthwhile = 64 << 20
	// pause and tries are after how many looks, and how often, it is tried again where it was of
	// no use.
	pause = 2
	tries = 8
)

// GiveBack returns memory to the system that the process no longer needs, until ctx ends, whatever
// it was needed for: bodies, connections, catalogs. Go alone takes minutes for that. While one
// runs, another returns at once.
func (b *Budget) GiveBack(ctx context.Context) {
	if !b.giving.CompareAndSwap(false, true) {
		return
	}
	defer b.giving.Store(false)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	last := see()
	h := holding{needed: last.held}
	for ; ; h.wait-- {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		now := see()
		if h.surplus(last, now) && h.wait <= 0 {
			debug.FreeOSMemory()
			before := now.held
			now = see()
			h.gave(before-min(before, now.held), now)
		}
		last = now
	}
}

// sight is what the runtime says of the process's memory, in bytes.
type sight struct {
	held      uint64 // of the system's, all in all
	free      uint64 // of that, what nothing is in
	allocated uint64 // since the start
}

// see is what is to be seen now. It stops nothing.
func see() sight {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return sight{
		held: samples[0].Value.Uint64() - samples[1].Value.Uint64(), free: samples[2].Value.Uint64(), allocated: samples[3].Value.Uint64(),
	}
}

// holding decides when memory is given back.
type holding struct {
	needed uint64 // what is held when all that can be is given back
	wait   int    // looks until it is tried again
	vain   int    // how often it was of no use in a row
	least  uint64 // the least that was held after one of those
}

// gave takes in how many bytes were given back, and what is held now: that may be in use for a
// moment, or, what was left each of many times, for good.
func (h *holding) gave(freed uint64, now sight) {
	if freed >= worthwhile/2 {
		h.vain = 0
		return
	}
	if h.vain == 0 {
		h.least = now.held
	}
	h.least = min(h.least, now.held)
	if h.vain < tries {
		h.vain++
		h.wait = pause
		return
	}
	h.needed, h.vain = h.least, 0
}

// surplus says whether much of what is held is of no use. What stays free is; what was not
// collected yet may be, where too little is allocated for Go to collect soon: it then does after
// minutes only. What turns out to be in use is looked for again some times.
func (h *holding) surplus(last, now sight) bool {
	h.needed = min(h.needed, now.held)
	quiet := now.allocated-last.allocated < now.held/2
	grown := now.held - h.needed
	free := min(last.free, now.free)
	return free >= worthwhile && free > now.held/2 || quiet && grown >= worthwhile && grown > h.needed/2
}
