// Package budget bounds the bytes of requests and answers that are under way in a process,
// whichever way they come in.
package budget

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Budget is so many bytes, which all listeners of a process share. It may be used
// concurrently.
type Budget struct {
	limit int64
	used  atomic.Int64
	peak  atomic.Int64 // since GiveBack looked last
}

// New is a budget of so many bytes, at least 1.
func New(limit int64) *Budget { return &Budget{limit: max(limit, 1)} }

// Limit is how many bytes there are.
func (b *Budget) Limit() int64 { return b.limit }

// Used is how many of them are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

const (
	lookEvery = 15 * time.Second
	// worthwhile is from how much memory on the system is given back what was used: to find it
	// takes a collection.
	worthwhile = 64 << 20
)

// GiveBack returns memory to the system after much of it was used, until ctx ends. Go by
// itself takes minutes for that.
func (b *Budget) GiveBack(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var peak int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		used := b.Used()
		peak = max(peak, b.peak.Swap(used))
		if peak-used >= worthwhile && used < peak/4 {
			debug.FreeOSMemory()
			peak = 0
		}
	}
}

// Lease is what one request and its answer hold of a budget. The zero value holds nothing.
// It belongs to one goroutine at a time.
type Lease struct {
	budget *Budget
	held   int64
}

// Lease is one that holds nothing yet.
func (b *Budget) Lease() Lease { return Lease{budget: b} }

// Take takes n bytes more, or says that there is no room for them.
func (l *Lease) Take(n int) bool {
	more := int64(n)
	used := l.budget.used.Add(more)
	if used > l.budget.limit {
		l.budget.used.Add(-more)
		return false
	}
	for {
		if peak := l.budget.peak.Load(); used <= peak || l.budget.peak.CompareAndSwap(peak, used) {
			break
		}
	}
	l.held += more
	return true
}

// Release gives back all that is held.
func (l *Lease) Release() {
	if l.held > 0 {
		l.budget.used.Add(-l.held)
		l.held = 0
	}
}
