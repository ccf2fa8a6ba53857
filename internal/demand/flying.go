package demand

import (
	"sync/atomic"
	"time"
)

// flying integrates the number of questions in flight over time, exactly to the
// microsecond. A question counts for its end less its beginning; one in flight, for
// now less its beginning. So the integral at a time is
//
//	Σ ends − Σ beginnings + questions in flight · now
//
// and two numbers say it all: the questions in flight, and Σ beginnings − Σ ends.
// Both are in one word, so that one add changes and one load reads both at the same
// moment. The sum is kept modulo 2⁴² µs: the differences of the integral that are
// asked for are below half of that, which is two million questions for a second.
type flying struct {
	word atomic.Uint64 // the sum, and in the lower bits the count
	last uint64        // the integral at the last take, modulo
}

const (
	countBits = 22
	sumBits   = 64 - countBits
	countMask = 1<<countBits - 1
)

func (f *flying) begin(at time.Duration) { f.word.Add(entry(at)) }

func (f *flying) end(at time.Duration) { f.word.Add(-entry(at)) }

// entry is one question at a time.
func entry(at time.Duration) uint64 { return uint64(at.Microseconds())<<countBits + 1 }

// take is the growth of the integral since the last take. now is read after the
// word, so that nothing in the word is later. One goroutine takes at a time.
func (f *flying) take(now func() time.Duration) time.Duration {
	word := f.word.Load()
	count, sum := word&countMask, word>>countBits
	integral := count*uint64(now().Microseconds()) - sum
	grown := int64((integral-f.last)<<countBits) >> countBits // modulo 2⁴², with its sign
	if grown < 0 {
		return 0 // an end that was read off the clock before the last take, and added after it
	}
	f.last = integral
	return time.Duration(grown) * time.Microsecond
}
