package custom

import (
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
)

// progress is what the policy keeps of a query that the model decides, between Select and the answer.
type progress struct {
	query   about         // what the model is told of the query each time
	watches bool          // the model wants to be told of answers as they come
	open    int           // how many of the plan's models are asked
	known   []known       // of the plan's models
	again   time.Duration // since Select: when the model wants to be asked though nothing has come; 0: never
}

// known is since when one model's answer is.
type known struct {
	after time.Duration // since Select
	come  bool
	fresh bool // the model has not been told of it
}

// note takes in what has come, and says whether anything is new.
func (g *progress) note(answers []selection.Answer, elapsed time.Duration) (news bool) {
	for i := range answers {
		if k := &g.known[i]; answers[i].Come() && !k.come {
			*k = known{after: elapsed, come: true, fresh: true}
		}
		news = news || g.known[i].fresh
	}
	return news
}

// awaits says whether any of the first n models of the plan has not answered.
func (g *progress) awaits(n int) bool {
	for i := range g.known[:n] {
		if !g.known[i].come {
			return true
		}
	}
	return false
}

// Combine implements selection.Policy. The model is asked for the answer when all have come, or when there is just time
// for its word; before, one that watches is told of what has come.
func (p *Policy) Combine(s *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	g, decides := plan.Own.(*progress)
	if !decides {
		return p.fallback.Combine(nil, plan, answers, at)
	}
	g.known = g.known[:len(answers)] // the gateway may have left out the last
	news := g.note(answers, at.Elapsed)
	last := at.Budget - p.within(at.Budget)
	switch {
	case at.Final:
		return p.substitute(plan, answers, at, selection.EndedDeadline)
	case !g.awaits(len(answers)) || at.Elapsed >= last:
		return p.conclude(s, plan, answers, at)
	case g.watches && (news || g.again > 0 && at.Elapsed >= g.again):
		return p.tell(s, plan, answers, at, last)
	}
	return g.wait(last)
}

// wait is for more to come, until the model wants to be called though nothing has come, or the last time that it can be.
func (g *progress) wait(last time.Duration) selection.Decision {
	d := selection.Decision{Open: g.open, Again: last}
	if g.again > 0 {
		d.Again = min(g.again, last)
	}
	return d
}

// tell tells the model of what has come, and does as it says: finish, call more models, or wait. One that fails is not
// told of answers any more; it may still combine them.
func (p *Policy) tell(s *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment, last time.Duration) selection.Decision {
	g := plan.Own.(*progress)
	var said decided
	err := p.ask(min(p.within(at.Budget), last-at.Elapsed), p.answerRequest("answer", s, plan, answers, at), &said)
	for i := range g.known {
		g.known[i].fresh = false
	}
	v, ok := said.verdict(plan, answers)
	switch {
	case err != nil || !ok && said.finishes():
		g.watches, g.open, g.again = false, len(answers), 0
		return g.wait(last)
	case ok:
		v.Ended = selection.EndedAcceptable
		return selection.Decision{Verdict: v, Done: true}
	}
	g.open = min(g.open+max(said.Next, 0), len(answers))
	g.again = 0
	if said.Wait > 0 {
		g.again = at.Elapsed + time.Duration(min(said.Wait, last.Microseconds()))*time.Microsecond
	}
	if !g.awaits(g.open) { // it has not asked for more
		return p.conclude(s, plan, answers, at)
	}
	return g.wait(last)
}

// conclude has the model combine what has come.
func (p *Policy) conclude(s *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	var said decided
	limit := min(p.within(at.Budget), at.Budget-at.Elapsed)
	if err := p.ask(limit, p.answerRequest("combine", s, plan, answers, at), &said); err == nil {
		if v, ok := said.verdict(plan, answers); ok {
			v.Ended = selection.EndedAll
			if g := plan.Own.(*progress); g.awaits(min(g.open, len(answers))) {
				v.Ended = selection.EndedTime
			}
			return selection.Decision{Verdict: v, Done: true}
		}
	}
	return p.substitute(plan, answers, at, selection.EndedTime)
}

// substitute has the fallback combine the answers so far, as if no more came.
func (p *Policy) substitute(plan *selection.Plan, answers []selection.Answer, at selection.Moment, ended selection.Ending) selection.Decision {
	var own selection.Plan
	candidates, order := sorted(plan)
	chance := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	p.fallback.Select(nil, &selection.Query{Budget: at.Budget, Rand: chance}, candidates, &own)
	theirs := make([]selection.Answer, len(own.Asks))
	for i, ask := range own.Asks {
		theirs[i] = answers[order[ask.Candidate]]
	}
	at.Final = true
	d := p.fallback.Combine(nil, &own, theirs, at)
	if d.Output == nil { // it did not want any of those that have come
		for i := range answers {
			if answers[i].Output != nil {
				d.Verdict = selection.Verdict{Output: answers[i].Output, Model: plan.Asks[i].ID}
				break
			}
		}
	}
	d.Done, d.Ended = true, ended
	return d
}
