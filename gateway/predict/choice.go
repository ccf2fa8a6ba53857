package predict

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// choice is the planner of apps whose policy chooses models.
type choice struct{ only *version } // nil: what the app or the query says

// begin has the policy plan which candidates to ask, and checks that they can be.
func (c choice) begin(q *query) error {
	if c.only != nil {
		q.only(c.only)
	} else if err := q.find(); err != nil {
		return err
	}
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
	q.policy.Select(q.state, &q.seen, q.candidates, &q.plan)
	q.wakeOthers()
	if q.plan.Now == 0 {
		q.plan.Now = len(q.plan.Asks)
	}
	fit := len(q.plan.Asks) == 0
	for i := range q.plan.Asks {
		v := q.versions[q.plan.Asks[i].Candidate]
		no := v.misfit(q.Input.Len())
		fit = fit || no == nil && !q.plan.Asks[i].Shadow
		if no == nil && q.plan.Asks[i].Absent {
			no = dispatch.NoReplica
		}
		q.attempts, q.answers = append(q.attempts, attempt{version: v}), append(q.answers, selection.Answer{Failure: no})
	}
	if !fit {
		return &serving.QueryError{Cause: q.answers[0].Failure.Message}
	}
	q.coldStart()
	return nil
}

// step makes the attempts that the plan wants, and if there is something new has the policy combine what has come.
func (choice) step(q *query, now time.Time) bool {
	elapsed, final := now.Sub(q.begun), !now.Before(q.respond)
	first := q.opened == 0
	for open, news := q.plan.Now, first; ; news = true {
		for ; q.opened < open; q.opened++ {
			if i := q.opened; !q.answers[i].Come() { // else it cannot be asked
				q.attempt(i, q.spare(i))
				q.countAsked(i)
			}
		}
		if first {
			q.trim()
			first = false
		}
		due := q.again > 0 && elapsed >= q.again
		if came := q.collect(now); !came && !news && !due && !final {
			q.hedge(now)
			return false
		}
		if final {
			q.leave(now)
		}
		d := q.policy.Combine(q.state, &q.plan, q.answers, selection.Moment{Elapsed: elapsed, Budget: q.respond.Sub(q.begun), Final: final})
		if final || d.Done && (!q.patient || q.all()) {
			q.decide(d)
			return true
		}
		open = min(max(d.Open, q.plan.Now), len(q.attempts))
		if q.opened >= open {
			q.again = 0
			if d.Again > elapsed { // else it has been asked by then
				q.again = d.Again
			}
			q.hedge(now)
			return false
		}
	}
}

func (choice) finish(q *query, a *serving.Prediction, counts bool) {
	a.Cached = !a.Default && q.fromCache()
	if len(q.candidates) > 1 && q.Version == "" {
		q.name(a)
	}
	if q.plan.Ranked {
		q.rank(a)
	}
	if q.Explain {
		a.Explained = q.explain()
	}
	if counts {
		if !q.app.single {
			q.count()
		}
		q.record(a, 0, q.opened)
	}
	if q.Timing != nil {
		q.time()
	}
}

// find finds the candidates: what the app's policy may choose from, or what the query names.
func (q *query) find() error {
	if q.Version != "" {
		v, err := q.pinned()
		if err != nil {
			return err
		}
		q.only(v)
		return nil
	}
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
	return nil
}

// only makes a version the only candidate, for whatever the app's policy is; nil is
// none.
func (q *query) only(v *version) {
	q.policy, q.single = q.p.single, true
	if v != nil {
		q.candidates, q.versions = append(q.candidates, q.app.candidate(v, v.ready())), append(q.versions, v)
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

// misfit is why a version cannot be asked about an input of such a length, or nil.
func (v *version) misfit(length int) *serving.Failure {
	if v.inputLength == 0 || length == v.inputLength {
		return nil
	}
	return &serving.Failure{
		Cause: serving.BadInput, Message: fmt.Sprintf("Input has length %d, and model %s takes %d", length, v.Model, v.inputLength),
	}
}

// wakeOneIn is how seldom a query wakes a model without a replica, which policies leave out
// while another is ready: so it is there to be tried when there are queries enough.
const wakeOneIn = 64

func (q *query) wakeOthers() {
	for i := range q.candidates {
		if !q.candidates[i].Ready && len(q.candidates) > 1 && !q.asks(i) && rand.Uint32N(wakeOneIn) == 0 {
			q.versions[i].replicas.PassedOver()
		}
	}
}

// coldStart gives the query the time to wait for a replica, if every version that it asks has none: that of an app that
// would rather wait, or until the replicas of versions are there that were redefined.
func (q *query) coldStart() {
	if !q.mayWait() || len(q.attempts) == 0 {
		return
	}
	limit := q.app.ColdStart.Std()
	for i := range q.attempts {
		b := q.attempts[i].version.replicas
		if b.Group().Len() > 0 && !b.Cold() {
			return
		}
		limit = max(limit, b.ReplacedUntil().Sub(q.Received))
	}
	q.allow(max(limit, q.app.SLO.Std()))
}

// mayWait says whether there may be a reason to wait longer than the objective.
func (q *query) mayWait() bool {
	return !q.patient && (q.app.ColdStart > q.app.SLO || q.p.dispatch.Replaced(q.Received))
}

func (q *query) countAsked(i int) {
	if m := q.attempts[i].version.metrics; m != nil && !q.patient && !q.attempts[i].shed {
		m().asked.Inc()
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
	if d.Ended == selection.EndedAcceptable || q.plan.Ranked && d.Ended == selection.EndedCertain {
		q.withdraw()
	}
}
