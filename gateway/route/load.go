package route

import (
	"sync/atomic"
	"time"
)

const (
	// reportFresh is how long a report of a replica's queue is believed, and how
	// long a failure is held against it.
	reportFresh = time.Second
	// latencyDecay is the weight of the past in the moving average of latency.
	latencyDecay = 0.9
	// failedCost is more than any replica that works can cost.
	failedCost = time.Hour
)

// load is how busy a replica is, as far as this gateway can tell. Its times are
// since the replica became known, on the monotonic clock.
type load struct {
	known    time.Time
	inFlight atomic.Int64
	wait     atomic.Int64 // reported: what a new query would wait, in nanoseconds
	reported atomic.Int64 // when it last replied
	failed   atomic.Int64 // when it last answered without an output; 0: an output came since
	latency  atomic.Int64 // moving average of outputs, in nanoseconds; 0: none came yet
}

func (l *load) at(now time.Time) int64 { return int64(now.Sub(l.known)) }

// report takes in what a reply says of the replica's queue.
func (l *load) report(wait time.Duration, now time.Time) {
	l.wait.Store(int64(wait))
	l.reported.Store(l.at(now))
}

// heardSince says whether anything was heard of the replica after t.
func (l *load) heardSince(t time.Time) bool { return l.reported.Load() > l.at(t) }

// output counts an output that took so long.
func (l *load) output(took time.Duration) {
	l.failed.Store(0)
	if old := l.latency.Load(); old > 0 {
		took = time.Duration(latencyDecay*float64(old) + (1-latencyDecay)*float64(took))
	}
	l.latency.Store(int64(max(took, 1)))
}

// failure counts an answer without an output. Such answers are fast, and leave no
// one in flight: without this a replica that fails would look idle.
func (l *load) failure(now time.Time) { l.failed.Store(max(l.at(now), 1)) }

// cheaper says whether a query would wait less at l than at other. A replica that
// has given no output yet is taken to be as fast as the other.
func (l *load) cheaper(other *load, now time.Time) bool {
	mine, theirs := l.latency.Load(), other.latency.Load()
	if mine == 0 {
		mine = theirs
	}
	if theirs == 0 {
		theirs = mine
	}
	return l.cost(mine, now) < other.cost(theirs, now)
}

// waiting is what a new query would wait, as the replica last reported; 0 when that is
// long ago.
func (l *load) waiting(now time.Time) time.Duration {
	if l.reported.Load() > l.at(now)-int64(reportFresh) {
		return time.Duration(l.wait.Load())
	}
	return 0
}

func (l *load) cost(latency int64, now time.Time) time.Duration {
	cost := time.Duration(latency+1) * time.Duration(l.inFlight.Load()+1)
	cost += l.waiting(now)
	oldest := l.at(now) - int64(reportFresh)
	if failed := l.failed.Load(); failed > 0 && failed > oldest {
		cost += failedCost
	}
	return cost
}
