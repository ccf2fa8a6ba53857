package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/kinds"
	"github.com/topsail-serving/topsail/serving"
)

// trace is what a policy did with a stream.
type trace struct {
	losses []float64 // of the answers, by query
	first  []int     // the model that was ranked first, by query
	asked  int       // how many questions all queries took
}

// replayer sends a stream through a policy.
type replayer struct {
	stream     *stream
	policy     selection.Policy
	loss       selection.Loss
	candidates []selection.Candidate
	state      *selection.State // nil when the policy does not learn
	plan       selection.Plan
	query      selection.Query
}

// newReplayer makes the policy as the gateway does for an app.
func newReplayer(app *serving.App, s *stream, seed uint64) (*replayer, error) {
	if err := app.Check(); err != nil {
		return nil, err
	}
	policy, err := kinds.New(app, nil)
	if err != nil {
		return nil, err
	}
	r := &replayer{stream: s, policy: policy, loss: selection.LossOf(&app.Policy)}
	r.query = selection.Query{Budget: budget, Rand: rand.New(rand.NewPCG(seed, 1))}
	var ids []serving.ModelID
	for i := range s.table.Models {
		m := &s.table.Models[i]
		took := time.Duration(m.Micros) * time.Microsecond
		ids = append(ids, m.id())
		r.candidates = append(r.candidates, selection.Candidate{ModelID: m.id(), Ready: true, Cost: float64(m.Micros), Median: took, P95: took})
	}
	if learner, learns := policy.(selection.Learner); learns {
		r.state = learner.New(ids)
	}
	return r, nil
}

// replay asks for every query of the stream and gives feedback before the next one.
func (r *replayer) replay() (*trace, error) {
	t := &trace{}
	for q := range r.stream.order {
		r.plan.Reset()
		r.query.Input = r.stream.input(q)
		r.policy.Select(r.state, &r.query, r.candidates, &r.plan)
		if len(r.plan.Asks) == 0 {
			return nil, fmt.Errorf("query %d: the policy asks no model", q)
		}
		verdict, asked := r.round(q).run()
		f, err := r.feedback(q, verdict.Output, asked)
		if err != nil {
			return nil, fmt.Errorf("query %d: %w", q, err)
		}
		if learner, learns := r.policy.(selection.Learner); learns {
			r.state = learner.Train(r.state, f)
		}
		t.losses, t.first, t.asked = append(t.losses, f.Loss), append(t.first, r.plan.Asks[0].Candidate), t.asked+asked
	}
	return t, nil
}

// round is a query as the plan has it. A model's place among the candidates is that in
// the table.
func (r *replayer) round(q int) *round {
	n := len(r.plan.Asks)
	one := &round{policy: r.policy, state: r.state, plan: &r.plan, answers: make([]selection.Answer, n), saying: make([]selection.Answer, n)}
	for i := range r.plan.Asks {
		model := r.plan.Asks[i].Candidate
		one.saying[i].Output = r.stream.output(model, q)
		one.took = append(one.took, r.candidates[model].Median)
	}
	return one
}

// feedback judges the answer and the models that were asked, and no others. No answer is as
// wrong as can be.
func (r *replayer) feedback(q int, answer *serving.Output, asked int) (*selection.Feedback, error) {
	f := &selection.Feedback{QueryID: int64(q + 1), Input: r.stream.input(q), Label: r.stream.label(q), Loss: 1}
	if answer != nil {
		var err error
		if f.Loss, err = r.loss.Of(answer, f.Label); err != nil {
			return nil, err
		}
	}
	for _, ask := range r.plan.Asks[:asked] {
		f.Outcomes = append(f.Outcomes, selection.Outcome{
			ModelID: ask.ID, Probability: ask.Probability, Output: r.stream.output(ask.Candidate, q),
			Loss: r.stream.losses[ask.Candidate][q], Judged: true,
		})
	}
	return f, nil
}
