package predict

import (
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// query is one query on its way.
type query struct {
	p   *Predictor
	app *app
	*serving.Query
	planner planner
	wake    cache.Waiter
	patient bool          // asked for learning: it waits for all models that are asked, and leaves no trace
	single  bool          // its policy asks one model, and looks neither at the clock nor at chance
	budget  time.Duration // what it had when it was received
	begun   time.Time     // when its policy made the plan; when it was received, if single
	respond time.Time     // when its answer must leave
	parts   *streamed     // nil: its answer is wanted as a whole
	watched bool          // it is to be known when its attempts did what

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

// planner decides which attempts a query makes, and when it has its verdict: an app's policy, or its
// stages.
type planner interface {
	// begin gets the first attempts ready, or says why the query cannot be. It asks nothing.
	begin(q *query) error
	// step makes the attempts that are due, looks at what has come, and says whether the query has
	// its verdict.
	step(q *query, now time.Time) bool
	// finish says in the answer what came of the attempts, and if it counts, counts and records it.
	finish(q *query, a *serving.Prediction, counts bool)
}

// begin plans a query, or with patience one to learn from, which has so much time.
func (q *query) begin(p *Predictor, asked *serving.Query, wake cache.Waiter, patience time.Duration) error {
	a, err := p.app(asked.App)
	if err != nil {
		return err
	}
	if asked.Input.Type != a.InputType {
		return &serving.QueryError{Cause: "Input of type " + asked.Input.Type.String() + ", and application " + a.Name + " takes " + a.InputType.String()}
	}
	q.take(p, a, asked, wake, patience)
	if err := q.planner.begin(q); err != nil {
		return err
	}
	if q.Timing != nil {
		q.Timing.Selected = time.Now()
	}
	return nil
}

// take takes a query in.
func (q *query) take(p *Predictor, a *app, asked *serving.Query, wake cache.Waiter, patience time.Duration) {
	if asked.Received.IsZero() { // a caller in process need not say
		asked.Received = time.Now()
	}
	q.p, q.app, q.Query, q.planner, q.wake = p, a, asked, a.planner, wake
	q.watched = asked.Explain || asked.Timing != nil
	if q.patient = patience > 0; q.patient {
		q.budget, q.respond = patience, asked.Received.Add(patience)
		return
	}
	q.allow(a.SLO.Std())
}

// class is what the query may ask for of capacity that is short.
func (q *query) class() serving.Class {
	c := q.app.class
	c.Priority = max(c.Priority, q.Priority)
	if q.patient { // nothing waits for what is learned
		c.Priority++
	}
	c.Priority = min(c.Priority, serving.LowestPriority)
	return c
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
