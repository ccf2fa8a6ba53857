// Package budget bounds the bytes of requests and answers that are under way in a process,
// whichever way they come in.
package budget

import "sync/atomic"

// Budget is so many bytes, which all listeners of a process share. It may be used
// concurrently.
type Budget struct {
	limit int64
	used  atomic.Int64

	giving atomic.Bool // GiveBack runs
}

// New is a budget of so many bytes, at least 1.
func New(limit int64) *Budget { return &Budget{limit: max(limit, 1)} }

// Limit is how many bytes there are.
func (b *Budget) Limit() int64 { return b.limit }

// Used is how many of them are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// Lease is what one request and its answer hold of a budget. The zero value holds nothing.
// It belongs to one goroutine at a time.
type Lease struct {
	budget *Budget
	held   int64
}

// Lease is one that holds nothing yet.
func (b *Budget) Lease() Lease { return Lease{budget: b} }

// perByte is what each byte takes: until Go collects, there is as much again that was used and
// is no more.
const perByte = 2

// Take takes room for n bytes more, or says that there is none.
func (l *Lease) Take(n int) bool {
	more := perByte * int64(n)
	if l.budget.used.Add(more) > l.budget.limit {
		l.budget.used.Add(-more)
		return false
	}
	l.held += more
	return true
}

// Give gives back the room for n bytes of what is held.
func (l *Lease) Give(n int) {
	less := perByte * int64(n)
	l.budget.used.Add(-less)
	l.held -= less
}

// Held is what is held of the budget.
func (l *Lease) Held() int64 { return l.held }

// Release gives back all that is held.
func (l *Lease) Release() {
	if l.held > 0 {
		l.budget.used.Add(-l.held)
		l.held = 0
	}
}
