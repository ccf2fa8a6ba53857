package conformance

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// outcome judges one model; its output is right where the loss is below a half.
func (s suite) outcome(id serving.ModelID, probability, loss float64) selection.Outcome {
	wrong := 0.0
	if !(loss < 0.5) {
		wrong = 1
	}
	return selection.Outcome{ModelID: id, Probability: probability, Output: s.Output(wrong), Loss: loss, Judged: true}
}

func (s suite) feedback(loss float64, outcomes ...selection.Outcome) *selection.Feedback {
	return &selection.Feedback{Input: s.Input, Label: s.Output(0), Loss: loss, Outcomes: outcomes}
}

// anyFeedback draws what an app may send, with models that were not asked, failed or
// were not judged, and queries without a label.
func (s suite) anyFeedback(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "models")
		l, state := s.learner(n, rapid.IntRange(0, 20).Draw(t, "rounds"), 1)
		for range rapid.IntRange(1, 20).Draw(t, "pieces") {
			f := s.feedback(rapid.Float64Range(0, 1).Draw(t, "answer's loss"))
			for _, id := range s.ids(n) {
				o := s.outcome(id, rapid.Float64Range(1e-6, 1).Draw(t, "probability"), rapid.Float64Range(0, 1).Draw(t, "loss"))
				switch rapid.IntRange(0, 4).Draw(t, "fate") {
				case 0:
					continue
				case 1:
					o.Output = nil
				case 2:
					o.Judged, o.Loss = false, 0
				}
				f.Outcomes = append(f.Outcomes, o)
			}
			if rapid.Bool().Draw(t, "reward") {
				f.Label = nil
			}
			state = l.Train(state, f)
			encode(t, state)
		}
		checkState(t, l, state)
	})
}

// hostileLosses is feedback that is allowed and mean.
func (s suite) hostileLosses(t *testing.T) {
	const n = 3
	for name, loss := range map[string]func(round, model int) float64{
		"always right":    func(int, int) float64 { return 0 },
		"always wrong":    func(int, int) float64 { return 1 },
		"alternating":     func(round, _ int) float64 { return float64(round % 2) },
		"in turns":        func(round, model int) float64 { return float64((round + model) % 2) },
		"one, and always": func(_, model int) float64 { return float64(min(model, 1)) },
	} {
		for probability, rounds := range map[float64]int{1: 600, 1e-9: 200} {
			l, state := s.learner(n, 0, 1)
			for round := range rounds {
				f := s.feedback(loss(round, 0))
				for model, id := range s.ids(n) {
					f.Outcomes = append(f.Outcomes, s.outcome(id, probability, loss(round, model)))
				}
				state = l.Train(state, f)
			}
			t.Logf("%s, asked with probability %v: %+v", name, probability, checkState(t, l, state))
			var plan selection.Plan
			l.Select(state, s.query(1), s.candidates(n), &plan)
			checkPlan(t, s, &plan, s.candidates(n))
		}
	}
}

// hostileNumbers is what no feedback should have, all through Train: the state stays
// finite, and an app that goes on learning still does.
func (s suite) hostileNumbers(t *testing.T) {
	hostile := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 2, 1e300, -1e300, 5e-324}
	for _, x := range hostile {
		for _, p := range append(hostile, 0.5, 0) {
			l, state := s.learner(3, 30, 1)
			for range 20 {
				for _, id := range s.ids(3) {
					state = l.Train(state, s.feedback(x, s.outcome(id, p, x)))
				}
			}
			checkState(t, l, state)
			checkState(t, l, s.teach(l, state, 3, 20, 2))
		}
	}
	for _, x := range hostile {
		l, state := s.learner(3, 30, 1)
		f := s.feedback(1, s.outcome(s.ids(3)[0], 0.5, 1))
		f.Input = Doubles(x, x, 1)
		checkState(t, l, s.teach(l, l.Train(state, f), 3, 20, 2))
	}
}

// strangers is feedback about models that are not there, or twice the same, or with
// another input than ever before.
func (s suite) strangers(t *testing.T) {
	l, state := s.learner(3, 30, 1)
	for name, f := range map[string]*selection.Feedback{
		"nothing":         s.feedback(1),
		"another model":   s.feedback(1, s.outcome(serving.ModelID{Model: "zz", Version: "1"}, 0.5, 1)),
		"another version": s.feedback(1, s.outcome(serving.ModelID{Model: names(1)[0], Version: "zz"}, 0.5, 1)),
		"the same twice":  s.feedback(1, s.outcome(s.ids(1)[0], 0.5, 1), s.outcome(s.ids(1)[0], 0.5, 0)),
		"no input":        {Loss: 1, Outcomes: []selection.Outcome{s.outcome(s.ids(1)[0], 0.5, 1)}},
		"a long input":    {Loss: 1, Input: Doubles(make([]float64, 1000)...), Outcomes: []selection.Outcome{s.outcome(s.ids(1)[0], 0.5, 1)}},
		"a text":          {Loss: 1, Input: serving.Input{Type: serving.Strings, Data: []byte("abc")}, Outcomes: []selection.Outcome{s.outcome(s.ids(1)[0], 0.5, 1)}},
	} {
		trained := l.Train(state, f)
		if len(trained.Models) != len(state.Models) {
			t.Errorf("%s: %d models became %d", name, len(state.Models), len(trained.Models))
		}
		checkState(t, l, s.teach(l, trained, 3, 20, 2))
	}
}

// olderState lacks what a later release keeps, or has it in another length.
func (s suite) olderState(t *testing.T) {
	for name, age := range map[string]func(*selection.State){
		"without vectors": func(o *selection.State) { each(o, func(m *selection.ModelState) { m.Vector = nil }) },
		"short vectors": func(o *selection.State) {
			each(o, func(m *selection.ModelState) { m.Vector = m.Vector[:len(m.Vector)/2] })
		},
		"long vectors": func(o *selection.State) {
			each(o, func(m *selection.ModelState) { m.Vector = append(m.Vector, 1, 2, 3) })
		},
		"without numbers": func(o *selection.State) { o.Numbers = nil },
		"short numbers":   func(o *selection.State) { o.Numbers = o.Numbers[:len(o.Numbers)/2] },
		"long numbers":    func(o *selection.State) { o.Numbers = append(o.Numbers, 1, 2, 3) },
		"without counters": func(o *selection.State) {
			each(o, func(m *selection.ModelState) { *m = selection.ModelState{ModelID: m.ModelID} })
		},
		"of nothing": func(o *selection.State) { *o = selection.State{Kind: o.Kind, Models: o.Models} },
		"negative": func(o *selection.State) {
			each(o, func(m *selection.ModelState) { m.Count, m.Sum, m.Weight = -5, -9, -1e9 })
		},
		"huge": func(o *selection.State) {
			each(o, func(m *selection.ModelState) { m.Count, m.Sum, m.Weight = 1e300, 1e300, 1e300 })
		},
		"full of zeros": func(o *selection.State) { each(o, func(m *selection.ModelState) { clear(m.Vector) }) },
	} {
		t.Run(name, func(t *testing.T) {
			l, state := s.learner(3, 50, 1)
			old := state.Clone()
			age(old)
			old.Format = 0
			checkState(t, l, old)
			var plan selection.Plan
			l.Select(old, s.query(1), s.candidates(3), &plan)
			checkPlan(t, s, &plan, s.candidates(3))
			answers := make([]selection.Answer, len(plan.Asks))
			for i := range answers {
				answers[i].Output = s.Output(1)
			}
			if d := l.Combine(old, &plan, answers, selection.Moment{Final: true}); !d.Done {
				t.Errorf("it decides %+v", d)
			}
			checkState(t, l, l.AddModel(old, serving.ModelID{Model: names(1)[0], Version: "w"}))
			checkState(t, l, l.UpdateVersion(old, serving.ModelID{Model: names(1)[0], Version: "x"}))
			checkState(t, l, s.teach(l, old, 3, 20, 2))
		})
	}
}

func each(s *selection.State, change func(*selection.ModelState)) {
	for i := range s.Models {
		change(&s.Models[i])
	}
}
