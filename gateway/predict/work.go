package predict

import (
	"fmt"
	"time"

	"topsail/gateway/cache"
	"topsail/gateway/selection"
	"topsail/serving"
)

// work is one query on its way.
type work struct {
	p       *Predictor
	app     *app
	q       *serving.Query
	wake    cache.Waiter
	budget  time.Duration // what it had when it was received
	respond time.Time     // when its answer must leave

	decision selection.Decision
	parts    []part             // whom it asks, in the decision's order
	answers  []selection.Answer // what they said; the policy looks at it
	hits     int                // answers from the cache or from joined flights

	verdict selection.Verdict
	done    bool

	candidates []serving.ModelID // scratch
}

// part is one model version that is asked.
type part struct {
	version *version
	flight  *cache.Flight
	call    *call     // nil when the flight was joined
	hedgeAt time.Time // when to go to a second replica; zero: not
}

func (w *work) prepare(p *Predictor, a *app, q *serving.Query, wake cache.Waiter) {
	w.p, w.app, w.q, w.wake = p, a, q, wake
	w.allow(a.SLO)
}

// allow gives the query so much time, or its client's own limit if that is shorter.
func (w *work) allow(limit time.Duration) {
	if w.q.Timeout > 0 && w.q.Timeout < limit {
		limit = w.q.Timeout
	}
	w.budget = limit - min(w.app.margin, limit/20)
	w.respond = w.q.Received.Add(w.budget)
}

// reset forgets everything but the memory of the slices.
func (w *work) reset() {
	clear(w.parts)
	clear(w.answers)
	*w = work{parts: w.parts[:0], answers: w.answers[:0], candidates: w.candidates[:0]}
}

// selectModels lets the policy decide whom to ask, and checks that they can be.
func (w *work) selectModels() error {
	selector := w.app.selector
	if w.q.Version == "" {
		for _, l := range w.app.models {
			if v := w.app.serving(l); v != nil {
				w.candidates = append(w.candidates, v.ModelID)
			}
		}
	} else {
		v, err := w.pinned()
		if err != nil {
			return err
		}
		selector = selection.Single{}
		if v != nil {
			w.candidates = append(w.candidates, v.ModelID)
		}
	}
	w.decision = selector.Select(w.q, w.candidates, w.budget)
	for _, id := range w.decision.Models() {
		v := w.app.find(id)
		if n := w.q.Input.Len(); v.inputLength > 0 && n != v.inputLength {
			return &serving.QueryError{Cause: fmt.Sprintf("Input has length %d, and model %s takes %d", n, v.Model, v.inputLength)}
		}
		w.parts = append(w.parts, part{version: v})
		w.answers = append(w.answers, selection.Answer{})
	}
	w.coldStart()
	return nil
}

// coldStart gives the query of an app that would rather wait the time to do so, if
// every version that it asks waits for its first replica.
func (w *work) coldStart() {
	if w.app.ColdStart <= w.app.SLO || len(w.parts) == 0 {
		return
	}
	for _, p := range w.parts {
		if b := p.version.backlog; b.group().Len() > 0 && !b.cold.Load() {
			return
		}
	}
	w.allow(w.app.ColdStart)
}

// pinned is the version that the query names, or nil for an app without a model.
func (w *work) pinned() (*version, error) {
	switch len(w.app.models) {
	case 0:
		return nil, nil
	case 1:
		l := w.app.models[0]
		v := l.versions[w.q.Version]
		if v == nil {
			return nil, &serving.QueryError{Cause: "Requested version: " + w.q.Version + " does not exist for model: " + l.name}
		}
		if v.inputType != w.app.InputType {
			return nil, &serving.QueryError{Cause: fmt.Sprintf("Requested version: %s of model: %s takes %v, and application %s takes %v", v.Version, l.name, v.inputType, w.app.Name, w.app.InputType)}
		}
		return v, nil
	}
	return nil, &serving.QueryError{Cause: "Too many models linked to application " + w.app.Name}
}

// find looks up a version that was a candidate.
func (a *app) find(id serving.ModelID) *version {
	for _, l := range a.models {
		if l.name == id.Model {
			return l.versions[id.Version]
		}
	}
	return nil
}

// ask asks every selected version: the cache, else an equal question in flight,
// else a replica.
func (w *work) ask() {
	for i := range w.parts {
		w.askPart(i)
	}
}

func (w *work) askPart(i int) {
	p := &w.parts[i]
	if w.q.NoCache || w.app.Cache.Off {
		p.flight = w.p.cache.Alone(w.wake)
		w.lead(p)
		return
	}
	if key := p.version.keyer.Key(w.q.Input, w.q.Salt); !w.cached(i, key) {
		w.join(i, key)
	}
}

// cached answers a part from the cache, if it can.
func (w *work) cached(i int, key cache.Key) bool {
	out := w.p.cache.Get(key, w.app.Cache.TTL)
	if out == nil {
		return false
	}
	w.answers[i].Output = out
	w.hits++
	w.app.metrics.hits.Inc()
	return true
}

// join joins an equal question in flight, or opens one and asks it.
func (w *work) join(i int, key cache.Key) {
	flight, opened := w.p.cache.Join(key, w.wake)
	w.parts[i].flight = flight
	switch {
	case !opened:
		w.hits++
		w.app.metrics.joins.Inc()
		w.parts[i].version.backlog.join(flight, w.respond)
	case w.cached(i, key): // an equal one landed since the first look into the cache
		flight.Land(w.answers[i].Output, nil)
	default:
		w.app.metrics.misses.Inc()
		w.lead(&w.parts[i])
	}
}

// lead asks a replica on behalf of a flight that this query opened.
func (w *work) lead(p *part) {
	now := time.Now()
	p.flight.Count(p.version.demand, now, w.respond)
	p.call = &call{
		p: w.p, app: w.app.metrics, backlog: p.version.backlog, flight: p.flight,
		input: w.q.Input, user: w.q.User, deadline: w.respond,
	}
	p.hedgeAt = p.call.start(now)
}

// step looks at what has come, and says whether the query has its verdict.
func (w *work) step() bool {
	w.collect()
	v, certain := w.decision.Combine(w.answers)
	if !certain {
		now := time.Now()
		if now.Before(w.respond) {
			w.hedge(now)
			return false
		}
		w.leave(now)
		v, _ = w.decision.Combine(w.answers)
	}
	w.verdict, w.done = v, true
	return true
}

func (w *work) collect() {
	for i := range w.parts {
		p, a := &w.parts[i], &w.answers[i]
		if a.Output != nil || a.Failure != nil {
			continue
		}
		out, failure, landed := p.flight.Result()
		if !landed {
			continue
		}
		if failure != nil && p.othersEnd(failure) && time.Now().Before(w.respond) {
			if p.call == nil {
				w.hits--
			}
			*p = part{version: p.version}
			w.askPart(i)
			continue
		}
		a.Output, a.Failure = out, failure
	}
}

// othersEnd says that the question ended because the time of another query was up,
// which asked it or gave it up.
func (p *part) othersEnd(f *serving.Failure) bool {
	return f == noReplica || p.call == nil && (f.Cause == serving.MissedSLO || f.Cause == serving.RefusedLate)
}

// leave gives up what has not come: held questions that were this query's alone are
// not sent any more.
func (w *work) leave(at time.Time) {
	for i := range w.parts {
		p, a := &w.parts[i], &w.answers[i]
		if a.Output != nil || a.Failure != nil {
			continue
		}
		a.Failure = p.version.backlog.leave(p.flight, at)
		if p.call != nil {
			p.call.abandon()
		}
	}
}

// hedge goes to a second replica where the first has been silent for too long.
func (w *work) hedge(now time.Time) {
	for i := range w.parts {
		if p := &w.parts[i]; !p.hedgeAt.IsZero() && !now.Before(p.hedgeAt) {
			p.hedgeAt = time.Time{}
			p.call.hedge(now)
		}
	}
}

// next is when the query must be looked at again at the latest.
func (w *work) next() time.Time {
	at := w.respond
	for i := range w.parts {
		if h := w.parts[i].hedgeAt; !h.IsZero() && h.Before(at) {
			at = h
		}
	}
	return at
}

// answer makes the prediction of the verdict, and counts it.
func (w *work) answer() serving.Prediction {
	a := serving.Prediction{QueryID: w.p.ids.Next(), Model: w.verdict.Model}
	if w.verdict.Output != nil {
		a.Output, a.Cached = w.verdict.Output.JSON, w.hits > 0 && w.hits == len(w.parts)
	} else {
		failure := w.verdict.Failure
		if failure == nil {
			failure = &serving.Failure{Cause: serving.MissedSLO}
		}
		a.Output, a.Default, a.Cause, a.Explanation = w.app.fallback, true, failure.Cause, failure.Explain()
	}
	w.app.metrics.answered(a.Cause, time.Since(w.q.Received))
	return a
}
