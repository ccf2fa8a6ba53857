package predict

import "sync/atomic"

const (
	// extraShare is one in how many calls may be an extra one: 5 %.
	extraShare = 20
	// extraSaved is how many extra calls can be saved up, so that the queries in
	// flight on a replica that dies can go elsewhere.
	extraSaved = 256
)

// budget bounds the calls beyond the first of each question, so that trying again
// cannot double the load of a system in trouble.
type budget struct{ tokens atomic.Int64 } // in units of 1/extraShare call

func newBudget() *budget {
	b := &budget{}
	b.tokens.Store(extraSaved * extraShare)
	return b
}

// earn adds the share of one first call.
func (b *budget) earn() {
	if b.tokens.Load() < extraSaved*extraShare {
		b.tokens.Add(1)
	}
}

// spend takes one extra call, if there is one.
func (b *budget) spend() bool {
	if b.tokens.Add(-extraShare) >= 0 {
		return true
	}
	b.tokens.Add(extraShare)
	return false
}
