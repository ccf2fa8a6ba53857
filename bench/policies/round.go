package main

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
)

// budget is what a query has, in simulated time: more than all models need one after
// another.
const budget = 50 * time.Millisecond

// round is one query on its way, with answers that come when their models have taken
// their time.
type round struct {
	policy  selection.Policy
	state   *selection.State
	plan    *selection.Plan
	answers []selection.Answer // by place in the plan: what has come
	saying  []selection.Answer // by place in the plan: what will
	took    []time.Duration    // by place in the plan
	due     []time.Duration    // of those that are asked: when they answer
}

// run carries the plan out as the gateway does, and says what came of it and how many
// were asked.
func (r *round) run() (v selection.Verdict, asked int) {
	open := r.plan.Now
	if open == 0 {
		open = len(r.plan.Asks)
	}
	at := time.Duration(0)
	for {
		r.open(open, at)
		r.collect(at)
		d := r.policy.Combine(r.state, r.plan, r.answers, selection.Moment{Elapsed: at, Budget: budget, Final: at >= budget})
		switch open = min(d.Open, len(r.plan.Asks)); {
		case d.Done || at >= budget:
			return d.Verdict, len(r.due)
		case open <= len(r.due):
			at = r.next(at, d.Again)
		}
	}
}

// open asks as many as that, if they are not asked yet.
func (r *round) open(upTo int, at time.Duration) {
	for len(r.due) < upTo {
		r.due = append(r.due, at+r.took[len(r.due)])
	}
}

func (r *round) collect(at time.Duration) {
	for i, due := range r.due {
		if due <= at {
			r.answers[i] = r.saying[i]
		}
	}
}

// next is when something happens again.
func (r *round) next(at, again time.Duration) time.Duration {
	next := budget
	if again > at {
		next = min(next, again)
	}
	for i, due := range r.due {
		if !r.answers[i].Come() {
			next = min(next, due)
		}
	}
	return next
}
