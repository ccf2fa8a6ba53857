package predict

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/timing"
	"github.com/topsail-serving/topsail/serving"
)

// query is one query on its way.
type query struct {
	p   *Predictor
	app *app
	*serving.Query
	wake    cache.Waiter
	patient bool           // asked for learning: it waits for all models that are asked, and leaves no trace
	single  bool           // its policy asks one model, and looks neither at the clock nor at chance
	budget  time.Duration  // what it had when it was received
	begun   time.Time      // when its policy made the plan; when it was received, if single
	respond time.Time      // when its answer must leave
	timing  *timing.Timing // to be filled in; nil: it is not wanted
	parts   *streamed      // nil: its answer is wanted as a whole
	watched bool           // it is to be known when its attempts did what

	policy   selection.Policy
	state    *selection.State
	seen     selection.Query
	plan     selection.Plan
	attempts []attempt          // asked or in reserve, in the plan's order
	answers  []selection.Answer // what they said; the policy looks at it
	opened   int                // how many of attempts were asked, or left out for good
	again    time.Duration      // when to call the policy again; 0: never
	left     []*version         // ranked last, and left out of the plan to save capacity
	slots    []int              // of an app with stages: the attempt of each, below 0 before it is asked

	verdict selection.Verdict
	done    bool

	candidates []selection.Candidate // scratch, as is all below
	versions   []*version            // of candidates
	rand       *rand.Rand
}

// prepare takes a query in; with patience it is one for learning, and has so much time.
func (q *query) prepare(p *Predictor, a *app, asked *serving.Query, wake cache.Waiter, patience time.Duration) {
	q.p, q.app, q.Query, q.wake, q.watched = p, a, asked, wake, asked.Explain
	if q.patient = patience > 0; q.patient {
		q.budget, q.respond = patience, asked.Received.Add(patience)
		return
	}
	q.allow(a.SLO.Std())
}

// allow gives the query so much time, or its client's own limit if that is shorter.
func (q *query) allow(limit time.Duration) {
	if q.Timeout > 0 && q.Timeout < limit {
		limit = q.Timeout
	}
	q.budget = limit - min(q.app.margin, limit/20)
	q.respond = q.Received.Add(q.budget)
}

// reset forgets everything but the memory of the slices.
func (q *query) reset() {
	clear(q.attempts)
	clear(q.answers)
	clear(q.versions)
	clear(q.left)
	q.plan.Reset()
	*q = query{
		plan: q.plan, attempts: q.attempts[:0], answers: q.answers[:0], left: q.left[:0],
		slots: q.slots[:0], candidates: q.candidates[:0], versions: q.versions[:0], rand: q.rand,
	}
}

// selectModels lets the policy plan which versions to ask, and checks that they can be.
func (q *query) selectModels() error {
	if q.Version == "" {
		q.policy, q.single = q.app.policy, q.app.single
		q.candidates, q.versions = q.app.candidates(q.candidates, q.versions)
		if q.Candidates != nil {
			if err := q.restrict(); err != nil {
				return err
			}
		}
		if q.app.learned != nil {
			q.state = q.p.states.Get(q.app.learned, q.User, q.Context)
		}
	} else {
		v, err := q.pinned()
		if err != nil {
			return err
		}
		q.only(v)
	}
	return q.plans()
}

// only makes a version the only candidate, for whatever the app's policy is; nil is
// none.
func (q *query) only(v *version) {
	q.policy, q.single = q.p.single, true
	if v != nil {
		q.candidates, q.versions = append(q.candidates, q.app.candidate(v, v.ready())), append(q.versions, v)
	}
}

// plans asks the policy for its plan, and gets ready to carry it out.
func (q *query) plans() error {
	q.begun = q.Received
	if !q.single {
		q.begun = time.Now()
		if q.rand == nil {
			q.rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		}
	}
	q.seen = selection.Query{
		User: q.User, Context: q.Context, Input: q.Input,
		Budget: q.respond.Sub(q.begun), Now: q.begun, Rand: q.rand,
	}
	q.wakeOthers()
	q.policy.Select(q.state, &q.seen, q.candidates, &q.plan)
	if q.plan.Now == 0 {
		q.plan.Now = len(q.plan.Asks)
	}
	fit := len(q.plan.Asks) == 0
	for i := range q.plan.Asks {
		v := q.versions[q.plan.Asks[i].Candidate]
		misfit := v.misfit(q.Input.Len())
		q.attempts, q.answers = append(q.attempts, attempt{version: v}), append(q.answers, selection.Answer{Failure: misfit})
		fit = fit || misfit == nil && !q.plan.Asks[i].Shadow
	}
	if !fit {
		return &serving.QueryError{Cause: q.answers[0].Failure.Message}
	}
	q.coldStart()
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

func (q *query) wakeOthers() {
	for i := range q.candidates {
		if !q.candidates[i].Ready && len(q.candidates) > 1 && rand.Uint32N(wakeOneIn) == 0 {
			q.versions[i].replicas.PassedOver()
		}
	}
}

// pinned is the version that the query names, or nil for an app without a model.
func (q *query) pinned() (*version, error) {
	switch len(q.app.models) {
	case 0:
		return nil, nil
	case 1:
		l := q.app.models[0]
		v := l.versions[q.Version].onHost()
		if v == nil {
			return nil, &serving.QueryError{Cause: "Requested version: " + q.Version + " does not exist for model: " + l.name, UnknownVersion: true}
		}
		if v.inputType != q.app.InputType {
			return nil, &serving.QueryError{Cause: fmt.Sprintf("Requested version: %s of model: %s takes %v, and application %s takes %v", v.Version, l.name, v.inputType, q.app.Name, q.app.InputType)}
		}
		if v.misfits != nil {
			return nil, &serving.QueryError{Cause: fmt.Sprintf("Requested version: %s of model: %s does not fit application %s: %v", v.Version, l.name, q.app.Name, v.misfits)}
		}
		return v, nil
	}
	return nil, &serving.QueryError{Cause: "Too many models linked to application " + q.app.Name}
}

// coldStart gives the query of an app that would rather wait the time to do so, if
// every version that it asks waits for its first replica.
func (q *query) coldStart() {
	if q.app.ColdStart <= q.app.SLO || len(q.attempts) == 0 || q.patient {
		return
	}
	for i := range q.attempts {
		if b := q.attempts[i].version.replicas; b.Group().Len() > 0 && !b.Cold() {
			return
		}
	}
	q.allow(q.app.ColdStart.Std())
}

// ask asks those that the plan wants asked at once.
func (q *query) ask() {
	if q.app.stages != nil {
		q.openStages(q.begun)
		return
	}
	q.open(q.plan.Now)
	q.trim()
}

// step looks at what has come, asks what the policy wants asked, and says whether the
// query has its verdict.
func (q *query) step(now time.Time) bool {
	if q.app.stages != nil {
		return q.stepStages(now)
	}
	elapsed := now.Sub(q.begun)
	for {
		q.collect(now)
		final := !now.Before(q.respond)
		if final {
			q.leave(now)
		}
		d := q.policy.Combine(q.state, &q.plan, q.answers, selection.Moment{Elapsed: elapsed, Budget: q.respond.Sub(q.begun), Final: final})
		if final || d.Done && (!q.patient || q.all()) {
			q.decide(d)
			return true
		}
		open := min(max(d.Open, q.plan.Now), len(q.attempts))
		if q.opened >= open {
			q.again = 0
			if d.Again > elapsed { // else it has been asked by then
				q.again = d.Again
			}
			q.hedge(now)
			return false
		}
		q.open(open)
	}
}

// all says whether every model that was asked has answered.
func (q *query) all() bool {
	for i := range q.answers[:q.opened] {
		if !q.answers[i].Come() {
			return false
		}
	}
	return true
}

// decide takes the policy's word.
func (q *query) decide(d selection.Decision) {
	q.verdict, q.done = d.Verdict, true
	if d.Ended == selection.EndedAcceptable {
		q.withdraw()
	}
}

// next is when the query must be looked at again at the latest.
func (q *query) next() time.Time {
	at := q.respond
	if q.again > 0 {
		if t := q.begun.Add(q.again); t.Before(at) {
			at = t
		}
	}
	for i := range q.attempts[:q.opened] {
		if q.answers[i].Come() {
			continue
		}
		for _, t := range []time.Time{q.attempts[i].hedgeAt, q.attempts[i].respond} {
			if !t.IsZero() && t.Before(at) {
				at = t
			}
		}
	}
	return at
}
