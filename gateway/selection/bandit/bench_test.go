package bandit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/serving"
)

// BenchmarkDecide is Select and Combine for ten models that have learned.
func BenchmarkDecide(b *testing.B) {
	for kind, make := range kinds {
		b.Run(kind, func(b *testing.B) {
			p, s := make(serving.PolicySpec{}, nil), scene(10)
			state := s.learn(p, 500)
			answers := []selection.Answer{{Output: conformance.Label(1)}, 9: {}}
			var plan selection.Plan
			b.ReportAllocs()
			for b.Loop() {
				plan.Reset()
				p.Select(state, s.query, s.candidates, &plan)
				p.Combine(state, &plan, answers[:len(plan.Asks)], selection.Moment{Budget: s.query.Budget})
			}
		})
	}
}

// BenchmarkTrain is one piece of feedback for ten models.
func BenchmarkTrain(b *testing.B) {
	for kind, make := range kinds {
		b.Run(kind, func(b *testing.B) {
			p, s := make(serving.PolicySpec{}, nil), scene(10)
			state := s.learn(p, 500)
			f := s.feedback(3, 0.5, 1)
			b.ReportAllocs()
			for b.Loop() {
				p.Train(state, f)
			}
		})
	}
}

// app is what the tests of one app share: models of which the first are the better ones.
type app struct {
	ids        []serving.ModelID
	candidates []selection.Candidate
	query      *selection.Query
}

func scene(models int) *app {
	s := &app{query: &selection.Query{
		Input:  conformance.Doubles(1, -2, 3, 0.5, 0, 1, 2, -1, 4, 0, 0, 1, 2, 3, 1, 1),
		Budget: 20 * time.Millisecond, Rand: rand.New(rand.NewPCG(1, 1)),
	}}
	for i := range models {
		id := serving.ModelID{Model: fmt.Sprintf("m%03d", i), Version: "1"}
		s.ids = append(s.ids, id)
		s.candidates = append(s.candidates, selection.Candidate{ModelID: id, Ready: true, Cost: 1})
	}
	return s
}

func (s *app) feedback(model int, probability, loss float64) *selection.Feedback {
	return &selection.Feedback{Input: s.query.Input, Loss: loss, Outcomes: []selection.Outcome{
		{ModelID: s.ids[model], Probability: probability, Loss: loss, Judged: true},
	}}
}

func (s *app) plan(p selection.Policy, state *selection.State) *selection.Plan {
	plan := &selection.Plan{}
	p.Select(state, s.query, s.candidates, plan)
	return plan
}

// learn trains a policy with what it asks for.
func (s *app) learn(p selection.Learner, rounds int) *selection.State {
	state := p.New(s.ids)
	for model := range s.ids {
		state = p.Train(state, s.feedback(model, 1, 0.5))
	}
	for range rounds {
		ask, loss := s.plan(p, state).Asks[0], 0.0
		if s.query.Rand.Float64() < 0.1+0.8*float64(ask.Candidate)/float64(len(s.ids)) {
			loss = 1
		}
		state = p.Train(state, s.feedback(ask.Candidate, ask.Probability, loss))
	}
	return state
}
