package predict

import (
	"fmt"
	"time"

	"topsail/gateway/cache"
	"topsail/serving"
)

// part is one model version that is asked, or in reserve.
type part struct {
	version *version      // nil: a stage without one
	stage   int           // of an app with stages
	input   serving.Input // what it is asked about
	respond time.Time     // when its answer must have come
	flight  *cache.Flight // nil before it is asked, and for what the cache has
	call    *call         // nil when the flight was joined
	asked   time.Time     // when, if the query is watched
	took    time.Duration // until it answered, the same
	looked  time.Duration // until the cache had been looked into, the same
	hedgeAt time.Time     // when to go to a second replica; zero: not
	cached  bool          // the cache had it, or an equal query asked
	shed    bool          // left out to save capacity
}

// open asks the next of the plan, until so many were.
func (w *work) open(n int) {
	for ; w.opened < n; w.opened++ {
		if i := w.opened; !w.answers[i].Come() {
			w.askPart(i, w.spare(i))
			if m := w.parts[i].version.metrics; m != nil && !w.patient && !w.parts[i].shed {
				m().asked.Inc()
			}
		}
	}
}

// askPart asks one: the cache, else an equal question in flight, else a replica. What
// would cost capacity is left out if it is spare and capacity is short.
func (w *work) askPart(i int, spare bool) {
	p := &w.parts[i]
	if p.respond.IsZero() {
		p.input, p.respond = w.q.Input, w.respond
	}
	if w.watched {
		p.asked = time.Now()
	}
	if w.q.NoCache || w.app.Cache.Off {
		if !spare || !w.shed(i) {
			p.flight = w.p.cache.Alone(w.wake)
			w.lead(i)
		}
		return
	}
	if key := p.version.keyer.Key(p.input, w.q.Salt); !w.cached(i, key) && (!spare || !w.shed(i)) {
		w.join(i, key)
	}
}

// cached answers a part from the cache, if it can.
func (w *work) cached(i int, key cache.Key) bool {
	out := w.p.cache.Get(key, w.app.Cache.TTL.Std())
	if out == nil {
		return false
	}
	p := &w.parts[i]
	w.answers[i].Output, p.cached = out, true
	if w.watched {
		p.took = time.Since(p.asked)
		p.looked = p.took
	}
	w.app.metrics.hits.Add(1)
	p.version.coldQueue.usage.Cached()
	return true
}

// join joins an equal question in flight, or opens one and asks it.
func (w *work) join(i int, key cache.Key) {
	p := &w.parts[i]
	flight, opened := w.p.cache.Join(key, w.wake)
	p.flight = flight
	switch {
	case !opened:
		p.cached = true
		w.app.metrics.joins.Add(1)
		if w.watched {
			p.looked = time.Since(p.asked)
		}
		p.version.coldQueue.join(flight, p.respond)
	case w.cached(i, key): // an equal one landed since the first look into the cache
		flight.Land(w.answers[i].Output, nil)
	default:
		w.app.metrics.misses.Add(1)
		w.lead(i)
	}
}

// lead asks a replica on behalf of a flight that this query opened.
func (w *work) lead(i int) {
	p, now := &w.parts[i], time.Now()
	p.flight.Count(p.version.demand, p.version.coldQueue.usage, now, p.respond)
	p.call = &call{
		p: w.p, app: w.app.metrics, extra: w.app.extra, coldQueue: p.version.coldQueue, flight: p.flight,
		input: p.input, user: w.q.User, affinity: w.q.Affinity, deadline: w.replyBy(p), respond: p.respond,
	}
	if w.timing != nil {
		p.looked, p.call.heard = now.Sub(p.asked), &heard{}
	}
	p.hedgeAt = p.call.start(now)
	switch ask := &w.plan.Asks[i]; {
	case ask.Shadow:
		p.hedgeAt = time.Time{} // nobody waits for it
	case ask.HedgeAfter > 0 && !p.hedgeAt.IsZero():
		p.hedgeAt = now.Add(ask.HedgeAfter)
	}
}

// collect takes in what has come.
func (w *work) collect(now time.Time) {
	for i := range w.parts[:w.opened] {
		p, a := &w.parts[i], &w.answers[i]
		if p.flight == nil || a.Come() {
			continue
		}
		out, failure, landed := p.flight.Result()
		if !landed {
			continue
		}
		if failure != nil && p.othersEnd(failure) && now.Before(p.respond) {
			w.retry(i, failure)
			continue
		}
		a.Output, a.Failure = out, failure
		if p.cached && out != nil {
			p.version.coldQueue.usage.Cached()
		}
		if w.watched {
			p.took = time.Since(p.asked)
		}
	}
}

// retryFactor is how many more objectives a replica has for a query that is retried:
// its output is taken then, and queries that are not go first.
const retryFactor = 3

// replyBy is when a replica must have answered.
func (w *work) replyBy(p *part) time.Time {
	if w.q.Again {
		return p.respond.Add(retryFactor * w.app.SLO.Std())
	}
	return p.respond
}

// retry asks a version again, whose question ended so. One that was superseded is asked
// as what it is by now.
func (w *work) retry(i int, ended *serving.Failure) {
	p := w.parts[i]
	v := p.version
	if ended == superseded {
		v = w.p.successor(w.app.Name, v.ModelID)
	}
	switch {
	case v == nil:
		w.answers[i].Failure = ended
		return
	case v.inputType != p.input.Type:
		w.answers[i].Failure = &serving.Failure{Cause: serving.ModelError, Message: fmt.Sprintf("model %v takes %v by now", v.ModelID, v.inputType)}
		return
	}
	if w.answers[i].Failure = v.misfit(p.input.Len()); w.answers[i].Failure != nil {
		return
	}
	w.parts[i] = part{version: v, stage: p.stage, input: p.input, respond: p.respond}
	w.askPart(i, false)
}

// othersEnd says that the question ended because the time of another query was up,
// which asked it or gave it up.
func (p *part) othersEnd(f *serving.Failure) bool {
	return f == noReplica || f == superseded || p.call == nil && (f.Cause == serving.MissedSLO || f.Cause == serving.RefusedLate)
}

// leave gives up what has not come: held questions that were this query's alone are
// not sent any more.
func (w *work) leave(at time.Time) {
	for i := range w.parts[:w.opened] {
		p, a := &w.parts[i], &w.answers[i]
		if p.flight == nil || a.Come() {
			continue
		}
		a.Failure = p.leave(at)
	}
}

// leave gives up the part, and says why if it was held.
func (p *part) leave(at time.Time) *serving.Failure {
	why := p.version.coldQueue.leave(p.flight, at)
	if p.call != nil {
		p.call.abandon()
	}
	return why
}

// withdraw takes back the questions that are not needed any more, unless somebody else
// waits for their answers.
func (w *work) withdraw() {
	for i := range w.parts[:w.opened] {
		p := &w.parts[i]
		if p.call != nil && !w.answers[i].Come() && !w.plan.Asks[i].Shadow && p.flight.Withdraw() {
			p.call.giveUp()
		}
	}
}

// hedge goes to a second replica where the first has been silent for too long.
func (w *work) hedge(now time.Time) {
	for i := range w.parts[:w.opened] {
		if p := &w.parts[i]; !p.hedgeAt.IsZero() && !now.Before(p.hedgeAt) {
			p.hedgeAt = time.Time{}
			p.call.hedge(now)
		}
	}
}
