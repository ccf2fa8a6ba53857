package predict

import (
	"fmt"
	"math/rand/v2"
	"time"

	"topsail/gateway/cache"
	"topsail/gateway/selection"
	"topsail/gateway/timing"
	"topsail/serving"
)

// work is one query on its way.
type work struct {
	p       *Predictor
	app     *app
	q       *serving.Query
	wake    cache.Waiter
	patient bool           // asked for learning: it waits for all who are asked, and leaves no trace
	single  bool           // its policy asks one model, and looks neither at the clock nor at chance
	budget  time.Duration  // what it had when it was received
	begun   time.Time      // when its policy was asked whom to ask; when it was received, if single
	respond time.Time      // when its answer must leave
	timing  *timing.Timing // to be filled in; nil: nobody wants it
	watched bool           // somebody wants to know when its parts did what

	policy  selection.Policy
	state   *selection.State
	query   selection.Query
	plan    selection.Plan
	parts   []part             // whom it asks or keeps in reserve, in the plan's order
	answers []selection.Answer // what they said; the policy looks at it
	opened  int                // how many of parts were asked, or left out for good
	again   time.Duration      // when the policy wants to be called again; 0: not
	left    []*version         // ranked last, and left out of the plan to save capacity
	slots   []int              // of an app with stages: the part of each, below 0 before it is asked

	verdict selection.Verdict
	done    bool

	candidates []selection.Candidate // scratch, as is all below
	versions   []*version            // of candidates
	rand       *rand.Rand
}

// prepare takes a query in; with patience it is one for learning, and has so much time.
func (w *work) prepare(p *Predictor, a *app, q *serving.Query, wake cache.Waiter, patience time.Duration) {
	w.p, w.app, w.q, w.wake, w.watched = p, a, q, wake, q.Explain
	if w.patient = patience > 0; w.patient {
		w.budget, w.respond = patience, q.Received.Add(patience)
		return
	}
	w.allow(a.SLO.Std())
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
	clear(w.versions)
	clear(w.left)
	w.plan.Reset()
	*w = work{
		plan: w.plan, parts: w.parts[:0], answers: w.answers[:0], left: w.left[:0],
		slots: w.slots[:0], candidates: w.candidates[:0], versions: w.versions[:0], rand: w.rand,
	}
}

// selectModels lets the policy decide whom to ask, and checks that they can be.
func (w *work) selectModels() error {
	if w.q.Version == "" {
		w.policy, w.single = w.app.policy, w.app.single
		w.candidates, w.versions = w.app.candidates(w.candidates, w.versions)
		if w.app.learned != nil {
			w.state = w.p.states.Get(w.app.learned, w.q.User, w.q.Context)
		}
	} else {
		v, err := w.pinned()
		if err != nil {
			return err
		}
		w.only(v)
	}
	return w.plans()
}

// only makes a version the only candidate, for whatever the app's policy is; nil is
// none.
func (w *work) only(v *version) {
	w.policy, w.single = w.p.single, true
	if v != nil {
		w.candidates, w.versions = append(w.candidates, w.app.candidate(v, v.ready())), append(w.versions, v)
	}
}

// plans asks the policy for its plan, and gets ready to carry it out.
func (w *work) plans() error {
	w.begun = w.q.Received
	if !w.single {
		w.begun = time.Now()
		if w.rand == nil {
			w.rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		}
	}
	w.query = selection.Query{
		User: w.q.User, Context: w.q.Context, Input: w.q.Input,
		Budget: w.respond.Sub(w.begun), Now: w.begun, Rand: w.rand,
	}
	w.wakeOthers()
	w.policy.Select(w.state, &w.query, w.candidates, &w.plan)
	if w.plan.Now == 0 {
		w.plan.Now = len(w.plan.Asks)
	}
	fit := len(w.plan.Asks) == 0
	for i := range w.plan.Asks {
		v := w.versions[w.plan.Asks[i].Candidate]
		misfit := v.misfit(w.q.Input.Len())
		w.parts, w.answers = append(w.parts, part{version: v}), append(w.answers, selection.Answer{Failure: misfit})
		fit = fit || misfit == nil && !w.plan.Asks[i].Shadow
	}
	if !fit {
		return &serving.QueryError{Cause: w.answers[0].Failure.Message}
	}
	w.coldStart()
	return nil
}

// misfit is why a version cannot be asked about an input of such a length, or nil.
func (v *version) misfit(length int) *serving.Failure {
	if v.inputLength == 0 || length == v.inputLength {
		return nil
	}
	return &serving.Failure{
		Cause: serving.ModelError, Message: fmt.Sprintf("Input has length %d, and model %s takes %d", length, v.Model, v.inputLength),
	}
}

// wakeOneIn is how seldom a query wakes a model without a replica, which policies pass
// over while another is ready: so it is there to be tried when there are queries enough.
const wakeOneIn = 64

func (w *work) wakeOthers() {
	for i := range w.candidates {
		if !w.candidates[i].Ready && len(w.candidates) > 1 && rand.Uint32N(wakeOneIn) == 0 {
			w.versions[i].coldQueue.passedOver()
		}
	}
}

// pinned is the version that the query names, or nil for an app without a model.
func (w *work) pinned() (*version, error) {
	switch len(w.app.models) {
	case 0:
		return nil, nil
	case 1:
		l := w.app.models[0]
		v := l.versions[w.q.Version].queued()
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

// coldStart gives the query of an app that would rather wait the time to do so, if
// every version that it asks waits for its first replica.
func (w *work) coldStart() {
	if w.app.ColdStart <= w.app.SLO || len(w.parts) == 0 || w.patient {
		return
	}
	for i := range w.parts {
		if b := w.parts[i].version.coldQueue; b.group().Len() > 0 && !b.cold.Load() {
			return
		}
	}
	w.allow(w.app.ColdStart.Std())
}

// ask asks those whom the plan wants asked at once.
func (w *work) ask() {
	if w.app.stages != nil {
		w.openStages(w.begun)
		return
	}
	w.open(w.plan.Now)
	w.trim()
}

// step looks at what has come, asks whom the policy wants asked, and says whether the
// query has its verdict.
func (w *work) step(now time.Time) bool {
	if w.app.stages != nil {
		return w.stepStages(now)
	}
	elapsed := now.Sub(w.begun)
	for {
		w.collect(now)
		final := !now.Before(w.respond)
		if final {
			w.leave(now)
		}
		d := w.policy.Combine(w.state, &w.plan, w.answers, selection.Moment{Elapsed: elapsed, Budget: w.respond.Sub(w.begun), Final: final})
		if final || d.Done && (!w.patient || w.all()) {
			w.decide(d)
			return true
		}
		open := min(max(d.Open, w.plan.Now), len(w.parts))
		if w.opened >= open {
			w.again = 0
			if d.Again > elapsed { // else it has been asked by then
				w.again = d.Again
			}
			w.hedge(now)
			return false
		}
		w.open(open)
	}
}

// all says whether everyone who was asked has answered.
func (w *work) all() bool {
	for i := range w.answers[:w.opened] {
		if !w.answers[i].Come() {
			return false
		}
	}
	return true
}

// decide takes the policy's word.
func (w *work) decide(d selection.Decision) {
	w.verdict, w.done = d.Verdict, true
	if d.Ended == selection.EndedAcceptable {
		w.withdraw()
	}
}

// next is when the query must be looked at again at the latest.
func (w *work) next() time.Time {
	at := w.respond
	if w.again > 0 {
		if t := w.begun.Add(w.again); t.Before(at) {
			at = t
		}
	}
	for i := range w.parts[:w.opened] {
		if w.answers[i].Come() {
			continue
		}
		for _, t := range []time.Time{w.parts[i].hedgeAt, w.parts[i].respond} {
			if !t.IsZero() && t.Before(at) {
				at = t
			}
		}
	}
	return at
}
