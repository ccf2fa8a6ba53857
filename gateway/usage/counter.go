// Package usage counts what comes of the questions to model versions and stages, and
// reports it to a store that keeps it, once a second.
//
// Who counts does so by atomic adds, without a lock and without memory. A Reporter takes
// what was counted and hands it to the store, in reports that the store takes once
// however often they come. What a process had not reported when it was killed, of a
// second at the most, is lost; nothing is counted twice.
package usage

import (
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Counter counts what comes of the questions to one model version or stage. The zero
// value is ready; a nil Counter counts nothing. All methods may be called concurrently.
type Counter struct {
	answers, cached, failed, missed atomic.Uint64

	nanos  atomic.Int64
	spread Spread
	last   Last
}

// Ended counts a question that was asked so long ago and ended now: with an output
// where failure is nil. It is called once for each question.
func (c *Counter) Ended(failure *serving.Failure, now time.Time, took time.Duration) {
	switch {
	case c == nil:
	case failure == nil:
		c.answers.Add(1)
		c.nanos.Add(int64(took))
		c.spread.Add(took)
	case counts(failure.Cause):
		c.failed.Add(1)
		c.last.Note(failure, now)
	default:
		c.missed.Add(1)
	}
}

// counts says whether a cause is an error of the model or its container, or its refusal of the input.
func counts(c serving.Cause) bool {
	return c == serving.ModelError || c == serving.ContainerError || c == serving.BadInput
}

// Cached counts an output that was taken from the cache, or from an equal question.
func (c *Counter) Cached() {
	if c != nil {
		c.cached.Add(1)
	}
}

// Take is what was counted since it was last taken. One goroutine takes at a time.
func (c *Counter) Take(key serving.UsageKey) serving.Usage {
	u := serving.Usage{Key: key, Cached: take(&c.cached), Failed: take(&c.failed), Missed: take(&c.missed), Last: c.last.Take()}
	u.Least, u.Most = c.spread.Take()
	u.Answers = take(&c.answers)
	if micros := c.nanos.Load() / 1000; micros != 0 { // what is below a microsecond is for the next time
		c.nanos.Add(-micros * 1000)
		u.Micros = uint64(micros)
	}
	return u
}

// take leaves a count at 0. It writes only where something was counted.
func take(n *atomic.Uint64) uint64 {
	if n.Load() == 0 {
		return 0
	}
	return n.Swap(0)
}

// Spread is the shortest and the longest of times since it was taken last. The zero
// value is ready.
type Spread struct{ least, most atomic.Int64 } // nanoseconds; 0: none came

// Add takes in a time. One of nothing counts as a nanosecond.
func (s *Spread) Add(took time.Duration) {
	took = max(took, 1)
	s.Join(took, took)
}

// Join takes in the shortest and the longest of other times; 0 is none.
func (s *Spread) Join(least, most time.Duration) {
	for old := s.least.Load(); least > 0 && (old == 0 || int64(least) < old) && !s.least.CompareAndSwap(old, int64(least)); old = s.least.Load() {
	}
	for old := s.most.Load(); int64(most) > old && !s.most.CompareAndSwap(old, int64(most)); old = s.most.Load() {
	}
}

// Take begins anew, and returns what it was; 0 is none.
func (s *Spread) Take() (least, most time.Duration) {
	if s.most.Load() == 0 && s.least.Load() == 0 {
		return 0, 0
	}
	return time.Duration(s.least.Swap(0)), time.Duration(s.most.Swap(0))
}

// Get is the shortest and the longest; 0 is none.
func (s *Spread) Get() (least, most time.Duration) {
	return time.Duration(s.least.Load()), time.Duration(s.most.Load())
}

// Last is the last failure since it was taken. The zero value is ready.
type Last struct {
	at      atomic.Int64 // Unix nanoseconds
	failure atomic.Pointer[serving.Failure]
}

// Note notes a failure, which must not change any more.
func (l *Last) Note(f *serving.Failure, now time.Time) {
	l.at.Store(now.UnixNano())
	l.failure.Store(f)
}

// Take forgets the failure and returns it, or nil. While several fail at once, its time
// may be that of another of them.
func (l *Last) Take() *serving.UsageFailure {
	if l.failure.Load() == nil {
		return nil
	}
	f := l.failure.Swap(nil)
	return serving.NewUsageFailure(f, time.Unix(0, l.at.Load()))
}
