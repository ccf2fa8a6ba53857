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
	// mostSurprise is how many times its service time a replica may seem to have taken for one query. An input that
	// takes a thousand times as long as others says nothing of the next one, and its replica would be shunned
	// while the queries of others wait behind such inputs. One that is slow throughout shows it within a few outputs.
	mostSurprise = 4
	// failedCost is more than any replica that works can cost.
	failedCost = time.Hour
)

// load is how busy a replica is, as far as this gateway can tell. Its times are
// since the replica became known, on the monotonic clock.
type load struct {
	known    time.Time
	inFlight [serving.Priorities]atomic.Int64
	reports  [serving.Priorities]report
	reported atomic.Int64                     // when it last replied
	busy     atomic.Int64                     // when it was last asked while nothing was in flight
	failed   [serving.Priorities]atomic.Int64 // when queries of this priority last could expect no output; 0: one came since
	latency  average                          // of outputs
	// service is latency by the queries in flight, so what the replica takes for one (Little's
	// law). Latencies themselves would make replicas that batch oscillate: one that was just sent
	// many looks slow when it is idle again. Each priority has its own: one below others is
	// overtaken, so that it would make the replica that has more of it look slow to all.
	service [serving.Priorities]average
}

// average is the quotient of two sums to which what came earlier counts less. The reader of the
// connection adds to it.
type average struct {
	value       atomic.Int64 // nanoseconds; 0: nothing came yet
	counted     time.Time
	took, parts float64
}

func (a *average) add(took time.Duration, parts float64, now time.Time) {
	past := math.Exp(-now.Sub(a.counted).Seconds() / outputDecay.Seconds())
	a.counted, a.took, a.parts = now, a.took*past+float64(took), a.parts*past+parts
	a.value.Store(max(int64(a.took/a.parts), 1))
}

// report is what a replica last said to a query of a priority.
type report struct {
	wait   atomic.Int64 // what a new one would wait, in nanoseconds
	others atomic.Int64 // of that, what is not for queries of this gateway
	at     atomic.Int64
}

func (l *load) at(now time.Time) int64 { return int64(now.Sub(l.known)) }

// report takes in what a reply to a query of a priority says of the replica's queue.
func (l *load) report(priority int, wait time.Duration, now time.Time) {
	r := &l.reports[priority]
	r.wait.Store(int64(wait))
	r.others.Store(max(int64(wait)-int64(math.Ceil(l.before(priority)))*l.service[priority].value.Load(), 0))
	r.at.Store(l.at(now))
	l.reported.Store(l.at(now))
}

// ask counts n more queries of a priority in flight.
func (l *load) ask(priority int, n int64) { l.inFlight[priority].Add(n) }

// sending notes that a query is about to be asked.
func (l *load) sending(now time.Time) {
	if l.all() == 0 {
		l.busy.Store(l.at(now))
	}
}

// silent is for how long nothing came while something was in flight.
func (l *load) silent(now time.Time) time.Duration {
	if l.all() == 0 {
		return 0
	}
	return time.Duration(l.at(now) - max(l.busy.Load(), l.reported.Load()))
}

// all is how many queries are in flight.
func (l *load) all() (n int64) {
	for p := range l.inFlight {
		n += l.inFlight[p].Load()
	}
	return n
}

// before is how many of the queries in flight go before one of a priority: all of the same and of
// higher ones, and of lower ones half a query, since one of them runs and is not interrupted.
func (l *load) before(priority int) (n float64) {
	for p := range l.inFlight {
		switch of := l.inFlight[p].Load(); {
		case p <= priority:
			n += float64(of)
		case of > 0:
			return n + 0.5
		}
	}
	return n
}

// heardSince says whether anything was heard of the replica after t.
func (l *load) heardSince(t time.Time) bool { return l.reported.Load() > l.at(t) }

// output counts an output that took so long, to a question of a priority that so many were before.
func (l *load) output(took time.Duration, priority int, before float64, now time.Time) {
	for p := range l.failed[:priority+1] { // what a lower one gets, a higher one would have got
		l.failed[p].Store(0)
	}
	l.latency.add(took, 1, now)
	if usual := l.service[priority].value.Load(); usual > 0 {
		took = min(took, time.Duration(mostSurprise*float64(usual)*(before+1)))
	}
	l.service[priority].add(took, before+1, now)
}

// failure counts an answer without an output, which those of a priority and below can expect.
// Such answers are fast, and leave nothing in flight: without this a replica that fails would look idle.
func (l *load) failure(priority int, now time.Time) { l.failed[priority].Store(max(l.at(now), 1)) }

// cheaper says whether a query of a priority would wait less at l than at other. A replica that
// has given no output yet is taken to be as fast as the other.
func (l *load) cheaper(other *load, priority int, now time.Time) bool {
	mine, theirs := l.service[priority].value.Load(), other.service[priority].value.Load()
	for p := 0; p < serving.Priorities && mine == 0 && theirs == 0; p++ {
		mine, theirs = l.service[p].value.Load(), other.service[p].value.Load()
	}
	if mine == 0 {
		mine = theirs
	}
	if theirs == 0 {
		theirs = mine
	}
	return l.cost(mine, priority, now) < other.cost(theirs, priority, now)
}

// waiting is what a new query of a priority would wait, as the replica last reported, and how much of
// that for others than those of this gateway; 0 when that is long ago.
func (l *load) waiting(priority int, now time.Time) (wait, others time.Duration) {
	for i := range l.reports[:priority+1] { // for what waits of higher ones it waits, too
		if r := &l.reports[i]; r.at.Load() > l.at(now)-int64(reportFresh) {
			wait, others = max(wait, time.Duration(r.wait.Load())), max(others, time.Duration(r.others.Load()))
		}
	}
	return wait, others
}

// ahead is what a new query would wait for those that are in front of it.
func (l *load) ahead(now time.Time) time.Duration {
	_, wait := l.waiting(serving.LowestPriority, now)
	for p := range l.inFlight {
		wait += time.Duration(l.service[p].value.Load() * l.inFlight[p].Load())
	}
	return wait
}

func (l *load) cost(service int64, priority int, now time.Time) time.Duration {
	_, others := l.waiting(priority, now)
	cost := others + time.Duration(float64(max(service, 2))*(l.before(priority)+1))
	cost = max(cost, l.silent(now)) // it has an input that takes longer than most
	oldest := l.at(now) - int64(reportFresh)
	for p := range l.failed[:priority+1] {
		if failed := l.failed[p].Load(); failed > 0 && failed > oldest {
			return cost + failedCost
		}
	}
	return cost
}
