// Package memory keeps account of the memory of a process that holds many models
// within a budget.
package memory

import "github.com/topsail-serving/topsail/serving"

// maxKnown bounds the sizes that are remembered of versions that were held once.
const maxKnown = 1 << 16

// Ledger knows what each version takes, and what the process takes as a whole. The two
// differ by what the process needs anyway, and by what it does not give back. It is for
// one goroutine at a time.
type Ledger struct {
	budget   int64
	base     int64 // of the process before it held anything
	resident int64 // of the process, as last reported
	held     map[serving.ModelID]int64
	sum      int64                     // of held
	known    map[serving.ModelID]int64 // what versions took when they were held
}

// New begins an account for a budget in bytes.
func New(budget int64) *Ledger {
	return &Ledger{budget: budget, held: map[serving.ModelID]int64{}, known: map[serving.ModelID]int64{}}
}

// Start begins anew, with a process that holds nothing yet and takes so many bytes.
func (l *Ledger) Start(resident int64) {
	l.base, l.resident, l.sum = resident, resident, 0
	clear(l.held)
}

// Report takes in what the process takes now as a whole. While it holds nothing that is what
// it takes anyway, unless it keeps what it freed: it may have begun with what it held before.
func (l *Ledger) Report(resident int64) {
	l.resident = resident
	if len(l.held) == 0 {
		l.base = min(l.base, resident)
	}
}

// Hold says that a version is held, and what it takes.
func (l *Ledger) Hold(id serving.ModelID, bytes int64) {
	l.sum += bytes - l.held[id]
	l.held[id] = bytes
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[id] = bytes
}

// Release says that a version is held no longer.
func (l *Ledger) Release(id serving.ModelID) {
	l.sum -= l.held[id]
	delete(l.held, id)
}

// Expect is what a version will take that is to be held: what it took the last time,
// else what its files have, or if they say less, as much as the others take on average.
func (l *Ledger) Expect(id serving.ModelID, files int64) int64 {
	if bytes, ok := l.known[id]; ok {
		return bytes
	}
	if n := int64(len(l.held)); n > 0 {
		return max(files, l.sum/n)
	}
	return files
}

// Used is what counts against the budget. A process that has not given back what it
// freed has less room, not more.
func (l *Ledger) Used() int64 { return max(l.base+l.sum, l.resident) }

// Models is what the versions take that are held.
func (l *Ledger) Models() int64 { return l.sum }

// Len is how many versions are held.
func (l *Ledger) Len() int { return len(l.held) }

// Budget is the bytes that the process may take.
func (l *Ledger) Budget() int64 { return l.budget }

// spare is the part of the budget that is kept free, for what loading and batches take
// for a moment: a sixteenth.
const spare = 16

// Base is what the process takes when it holds nothing.
func (l *Ledger) Base() int64 { return l.base }

// Could says whether so many bytes would fit if nothing else were held.
func (l *Ledger) Could(bytes int64) bool { return l.base+bytes <= l.budget-l.budget/spare }

// Fits says whether so many bytes more stay within the budget.
func (l *Ledger) Fits(more int64) bool { return l.Used()+more <= l.budget-l.budget/spare }
