package route

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/serving"
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
	of       [serving.Priorities]atomic.Int64 // of inFlight
	reports  [serving.Priorities]report
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

// report is what a replica last said to a query of a priority.
type report struct {
	wait atomic.Int64 // what a new one would wait, in nanoseconds
	at   atomic.Int64
}

func (l *load) at(now time.Time) int64 { return int64(now.Sub(l.known)) }

// report takes in what a reply to a query of a priority says of the replica's queue.
func (l *load) report(priority int, wait time.Duration, now time.Time) {
	r := &l.reports[priority]
	r.wait.Store(int64(wait))
	r.at.Store(l.at(now))
	l.reported.Store(l.at(now))
}

// ask counts n queries of a priority in flight.
func (l *load) ask(priority int, n int64) {
	l.inFlight.Add(n)
	l.of[priority].Add(n)
}

// before is how many queries are in flight that may go before one of a priority.
func (l *load) before(priority int) (n int64) {
	n = l.inFlight.Load()
	for p := priority + 1; p < serving.Priorities; p++ {
		n -= l.of[p].Load()
	}
	return n
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

// cheaper says whether a query of a priority would wait less at l than at other. A replica that
// has given no output yet is taken to be as fast as the other.
func (l *load) cheaper(other *load, priority int, now time.Time) bool {
	mine, theirs := l.service.Load(), other.service.Load()
	if mine == 0 {
		mine = theirs
	}
	if theirs == 0 {
		theirs = mine
	}
	return l.cost(mine, priority, now) < other.cost(theirs, priority, now)
}

// waiting is what a new query of a priority would wait, as the replica last reported; 0 when that is
// long ago.
func (l *load) waiting(priority int, now time.Time) (wait time.Duration) {
	for i := range l.reports[:priority+1] { // for what waits of higher ones it waits, too
		if r := &l.reports[i]; r.at.Load() > l.at(now)-int64(reportFresh) {
			wait = max(wait, time.Duration(r.wait.Load()))
		}
	}
	return wait
}

// ahead is what a new query would wait for those that are in front of it.
func (l *load) ahead(now time.Time) time.Duration {
	return time.Duration(l.service.Load()*l.inFlight.Load()) + l.waiting(serving.LowestPriority, now)
}

func (l *load) cost(service int64, priority int, now time.Time) time.Duration {
	before := l.before(priority)
	cost := time.Duration(service+1) * time.Duration(before+1)
	if before < l.inFlight.Load() {
		cost += time.Duration(service / 2) // one of a lower priority runs, and is half done
	}
	cost += l.waiting(priority, now)
	oldest := l.at(now) - int64(reportFresh)
	if failed := l.failed.Load(); failed > 0 && failed > oldest {
		cost += failedCost
	}
	return cost
}
