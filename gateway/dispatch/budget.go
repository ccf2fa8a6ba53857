package dispatch

import "sync/atomic"

const (
	// extraEvery and extraShare are the part of all calls that may be extra ones.
	extraEvery = 20
	extraShare = 1.0 / extraEvery
	// extraSaved is how many extra calls can be saved up, so that the queries in
	// flight on a replica that dies can go elsewhere.
	extraSaved = 256
	// extraCall is what an extra call costs in a budget.
	extraCall = 1000
)

// Budget bounds the calls beyond the first of each question, so that trying again
// cannot double the load of an overloaded system.
type Budget struct {
	share  int64        // what a first call earns, in units of 1/extraCall
	tokens atomic.Int64 // in the same
}

// NewBudget allows a share of all calls to be extra ones.
func NewBudget(share float64) *Budget {
	b := &Budget{share: int64(share * extraCall)}
	b.tokens.Store(extraSaved * extraCall)
	return b
}

// earn adds the share of one first call.
func (b *Budget) earn() {
	if b.tokens.Load() < extraSaved*extraCall {
		b.tokens.Add(b.share)
	}
}

// Spend takes one extra call, if there is one.
func (b *Budget) Spend() bool {
	if b.tokens.Add(-extraCall) >= 0 {
		return true
	}
	b.tokens.Add(extraCall)
	return false
}
