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
)

// GiveBack returns memory to the system that the process no longer needs, until ctx ends,
// whatever it was needed for: bodies, connections, catalogs. Go by itself takes minutes for
// that. While one runs, another returns at once.
func (b *Budget) GiveBack(ctx context.Context) {
	if !b.giving.CompareAndSwap(false, true) {
		return
	}
	defer b.giving.Store(false)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var h holding
	for last := see(); ; {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		now := see()
		if h.surplus(last, now) {
			debug.FreeOSMemory()
			now = see()
			h.needed = now.held
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
	needed uint64 // what was held when all that could be was given back last
}

// surplus says whether much of what is held is of no use. What stays free is; what was not
// collected yet may be, where little happens: Go then collects after minutes only. What turns
// out to be in use is not looked for again.
func (h *holding) surplus(last, now sight) bool {
	h.needed = min(h.needed, now.held)
	quiet := now.allocated-last.allocated < now.held/8
	grown := now.held - h.needed
	free := min(last.free, now.free)
	return free >= worthwhile && free > now.held/2 || quiet && grown >= worthwhile && grown > h.needed/2
}
