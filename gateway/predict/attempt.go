package predict

import (
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/serving"
)

// attempt is one model version that is asked, or in reserve.
type attempt struct {
	version *version       // nil: a stage without one
	app     *nested        // of a stage that asks an app; else nil
	stage   int            // of an app with stages
	input   serving.Input  // what it is asked about
	respond time.Time      // when its answer must have come
	flight  *cache.Flight  // nil before it is asked, and for what the cache has
	call    *dispatch.Call // nil when the flight was joined
	asked   time.Time      // when, if the query is watched
	took    time.Duration  // until it answered, the same
	looked  time.Duration  // until the cache had been looked into, the same
	hedgeAt time.Time      // when to go to a second replica; zero: not
	cached  bool           // the cache had it, or an equal query asked
	shed    bool           // left out to save capacity
}

// id is the version that has answered; of an app the one that decided, if it was one.
func (try *attempt) id() serving.ModelID {
	if try.app != nil {
		return try.app.answer.Model
	}
	return try.version.ModelID
}

// attempt asks one: the cache, else an equal question in flight, else a replica. What
// would cost capacity is left out if it is spare and capacity is short.
func (q *query) attempt(i int, spare bool) {
	try := &q.attempts[i]
	if try.respond.IsZero() {
		try.input, try.respond = q.Input, q.respond
	}
	if q.watched {
		try.asked = time.Now()
	}
	leads := q.leads(i, spare)
	if q.watched {
		try.looked = time.Since(try.asked)
	}
	if !leads {
		return
	}
	now := time.Now()
	try.flight.Count(try.version.demand, try.version.replicas.Usage, now, try.respond)
	try.call = q.call(i)
	try.hedgeAt = try.version.replicas.Ask(try.call, now)
	switch ask := &q.plan.Asks[i]; {
	case ask.Shadow:
		try.hedgeAt = time.Time{} // nothing waits for it
	case ask.HedgeAfter > 0 && !try.hedgeAt.IsZero():
		try.hedgeAt = now.Add(ask.HedgeAfter)
	}
}

// leads says whether the query opened the attempt's flight, for which a replica has to be asked. Else
// the cache has the answer, or an equal question in flight gets it, or the attempt is left out.
func (q *query) leads(i int, spare bool) bool {
	try := &q.attempts[i]
	if q.NoCache || q.app.Cache.Off {
		if spare && q.shed(i) {
			return false
		}
		try.flight = q.p.cache.Alone(q.wake)
		return true
	}
	key := try.version.keyer.Key(try.input, q.salt(try.version))
	if q.cached(i, key) || spare && q.shed(i) {
		return false
	}
	if q.streams(i) && !q.app.ShareStreams {
		try.flight = q.p.cache.Own(key, q.wake)
		q.app.metrics.misses.Add(1)
		return true
	}
	return q.join(i, key)
}

// cached answers an attempt from the cache, if it can.
func (q *query) cached(i int, key cache.Key) bool {
	out := q.p.cache.Get(key, q.app.Cache.TTL.Std())
	if out == nil {
		return false
	}
	try := &q.attempts[i]
	q.answers[i].Output, try.cached = out, true
	if q.watched {
		try.took = time.Since(try.asked)
	}
	q.app.metrics.hits.Add(1)
	try.version.replicas.Usage.Cached()
	return true
}

// join joins an equal question in flight, or opens one and says so.
func (q *query) join(i int, key cache.Key) (leads bool) {
	try := &q.attempts[i]
	flight, opened := q.p.cache.Join(key, q.class().Priority, q.wake)
	try.flight = flight
	switch {
	case !opened:
		try.cached = true
		q.app.metrics.joins.Add(1)
		try.version.replicas.Join(flight, try.respond)
		if q.streams(i) {
			q.parts.join(i, flight, q.wake)
		}
		return false
	case q.cached(i, key): // an equal one landed since the first look into the cache
		flight.Land(q.answers[i].Output, nil)
		return false
	}
	q.app.metrics.misses.Add(1)
	return true
}

// call is the one that gets the answer for an attempt's flight.
func (q *query) call(i int) *dispatch.Call {
	try := &q.attempts[i]
	c := &dispatch.Call{
		Flight: try.flight, Input: try.input, User: q.User, Class: q.class(), Context: q.contextFor(try.version), Affinity: q.Affinity, Deadline: q.replyBy(try), Respond: try.respond,
		Extra: q.app.extra, Late: &q.app.metrics.late, Timed: q.Timing != nil,
		Prefix: q.app.Route == serving.RoutePrefix,
	}
	if q.streams(i) {
		c.Parts = true
		q.parts.lead(i, try.flight, q.wake, c.GiveUp)
	}
	return c
}

// salt keeps answers apart that must not be shared: of queries with different salts, and if the
// version gets the session, of different users and contexts.
func (q *query) salt(v *version) string {
	if !v.session {
		return q.Salt
	}
	return q.Salt + "\x00" + q.User + "\x00" + q.Context
}

// contextFor is the query's context for a version that gets the session.
func (q *query) contextFor(v *version) string {
	if !v.session {
		return ""
	}
	return q.Context
}

// collect takes in what has come, and says whether something has.
func (q *query) collect(now time.Time) (came bool) {
	for i := range q.attempts[:q.opened] {
		try, a := &q.attempts[i], &q.answers[i]
		if try.flight == nil || a.Come() {
			continue
		}
		out, failure, landed := try.flight.Result()
		if !landed {
			continue
		}
		came = true
		if failure != nil && try.app == nil && try.othersEnd(failure) && now.Before(try.respond) && !q.parts.given() {
			q.retry(i, failure)
			continue
		}
		if out != nil && out.Uncollected && !q.parts.readsOf(i) {
			out, failure = nil, &serving.Failure{Cause: serving.ModelError, Message: "the answer is too large to be collected: ask for it in parts"}
		}
		a.Output, a.Failure = out, failure
		switch {
		case try.app != nil:
			try.cached = try.app.answer.Cached
		case try.cached && out != nil:
			try.version.replicas.Usage.Cached()
		}
		if q.watched {
			try.took = time.Since(try.asked)
		}
	}
	return came
}

// retryFactor is how many more objectives a replica has for a query that is retried:
// its output is taken then, and queries that are not go first.
const retryFactor = 3

// replyBy is when a replica must have answered.
func (q *query) replyBy(try *attempt) time.Time {
	if q.Again {
		return try.respond.Add(retryFactor * q.app.SLO.Std())
	}
	return try.respond
}

// retry asks a version again, whose question ended so. One that was superseded is asked in its
// present definition.
func (q *query) retry(i int, ended *serving.Failure) {
	try := q.attempts[i]
	v := try.version
	if ended == dispatch.Superseded {
		v = q.p.successor(q.app.Name, v.ModelID)
	}
	switch {
	case v == nil:
		q.answers[i].Failure = ended
		return
	case v.inputType != try.input.Type:
		q.answers[i].Failure = &serving.Failure{Cause: serving.ModelError, Message: fmt.Sprintf("model %v now takes %v", v.ModelID, v.inputType)}
		return
	}
	if q.answers[i].Failure = v.misfit(try.input.Len()); q.answers[i].Failure != nil {
		return
	}
	q.attempts[i] = attempt{version: v, stage: try.stage, input: try.input, respond: try.respond}
	q.attempt(i, false)
}

// othersEnd says that the question ended because the time of another query was up,
// which asked it or gave it up.
func (try *attempt) othersEnd(f *serving.Failure) bool {
	return f == dispatch.NoReplica || f == dispatch.Superseded || try.call == nil && (f.Cause == serving.MissedSLO || f.Cause == serving.RefusedLate)
}

// leave gives up what has not come: held questions that were this query's alone are
// not sent any more.
func (q *query) leave(at time.Time) {
	for i := range q.attempts[:q.opened] {
		try, a := &q.attempts[i], &q.answers[i]
		if try.flight == nil || a.Come() {
			continue
		}
		a.Failure = try.leave(at)
	}
}

// leave gives up the attempt, and says why if it was held.
func (try *attempt) leave(at time.Time) *serving.Failure {
	if try.app != nil {
		try.app.leave()
		return nil
	}
	why := try.version.replicas.Leave(try.flight, at)
	if try.call != nil {
		try.call.Abandon()
	}
	return why
}

// withdraw takes back the questions that are not needed any more, unless another query
// waits for their answers, or the parts of one are read.
func (q *query) withdraw() {
	for i := range q.attempts[:q.opened] {
		try := &q.attempts[i]
		if try.app != nil {
			try.app.leave()
		}
		if try.call != nil && !q.answers[i].Come() && !q.plan.Asks[i].Shadow && !q.parts.readsOf(i) && try.flight.Withdraw() {
			try.call.GiveUp()
		}
	}
}

// hedge goes to a second replica where the first has been silent for too long.
func (q *query) hedge(now time.Time) {
	for i := range q.attempts[:q.opened] {
		if try := &q.attempts[i]; !try.hedgeAt.IsZero() && !now.Before(try.hedgeAt) {
			try.hedgeAt = time.Time{}
			try.call.Hedge(now)
		}
	}
}
