package route

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// reportFresh is how long a report of a replica's queue is trusted, and how
	// long a failure is held against it.
	reportFresh = time.Second
	// outputDecay is how long an output counts in the averages.
	outputDecay = time.Second
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
	latency  atomic.Int64 // of outputs on average, in nanoseconds; 0: none came yet
	// service is latency by the queries in flight, so what the replica takes for one (Little's
	// law). Latencies themselves would make replicas that batch oscillate: one that was just sent
	// many looks slow when it is idle again.
	service atomic.Int64

	// Of the reader of the connection, each output counting less as it ages.
	counted time.Time
	outputs float64
	shares  float64 // queries that were in flight when one was sent, with itself
	took    float64 // nanoseconds
}

func (l *load) at(now time.Time) int64 { return int64(now.Sub(l.known)) }

// report takes in what a reply says of the replica's queue.
func (l *load) report(wait time.Duration, now time.Time) {
	l.wait.Store(int64(wait))
	l.reported.Store(l.at(now))
}

// heardSince says whether anything was heard of the replica after t.
func (l *load) heardSince(t time.Time) bool { return l.reported.Load() > l.at(t) }

// output counts an output that took so long, to a question before which so many were in flight.
func (l *load) output(took time.Duration, before int, now time.Time) {
	l.failed.Store(0)
	past := math.Exp(-now.Sub(l.counted).Seconds() / outputDecay.Seconds())
	l.counted, l.outputs, l.shares, l.took = now, l.outputs*past+1, l.shares*past+float64(before+1), l.took*past+float64(took)
	l.latency.Store(max(int64(l.took/l.outputs), 1))
	l.service.Store(max(int64(l.took/l.shares), 1))
}

// failure counts an answer without an output. Such answers are fast, and leave nothing in flight:
// without this a replica that fails would look idle.
func (l *load) failure(now time.Time) { l.failed.Store(max(l.at(now), 1)) }

// cheaper says whether a query would wait less at l than at other. A replica that
// has given no output yet is taken to be as fast as the other.
func (l *load) cheaper(other *load, now time.Time) bool {
	mine, theirs := l.service.Load(), other.service.Load()
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

// ahead is what a new query would wait for those that are in front of it.
func (l *load) ahead(now time.Time) time.Duration {
	return time.Duration(l.service.Load()*l.inFlight.Load()) + l.waiting(now)
}

func (l *load) cost(service int64, now time.Time) time.Duration {
	cost := time.Duration(service+1) * time.Duration(l.inFlight.Load()+1)
	cost += l.waiting(now)
	oldest := l.at(now) - int64(reportFresh)
	if failed := l.failed.Load(); failed > 0 && failed > oldest {
		cost += failedCost
	}
	return cost
}
