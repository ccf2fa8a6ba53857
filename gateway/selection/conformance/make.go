package conformance

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Number is an output that is one number.
func Number(x float64) *serving.Output { return output(serving.Number(x)) }

// Label is an output that is a text.
func Label(x float64) *serving.Output { return output(serving.Text(fmt.Sprintf("label %g", x))) }

// Vector is an output of three numbers.
func Vector(x float64) *serving.Output {
	return output(serving.Value{DType: serving.Float64, Shape: []int{3}, Data: Doubles(x, x/2, 1).Data})
}

// Doubles is an input.
func Doubles(list ...float64) serving.Input {
	in := serving.Input{Type: serving.Doubles}
	for _, x := range list {
		in.Data = binary.LittleEndian.AppendUint64(in.Data, math.Float64bits(x))
	}
	return in
}

func output(v serving.Value) *serving.Output {
	o, err := serving.NewOutput(v)
	if err != nil {
		panic(err) // the numbers of a test are finite
	}
	return o
}

func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("m%04d", i)
	}
	return list
}

// links are what an app of n models links.
func (s suite) links(n int) []string {
	if s.Single {
		return names(1)
	}
	return names(n)
}

// ids are n model versions that can be chosen from.
func (s suite) ids(n int) []serving.ModelID {
	list := make([]serving.ModelID, n)
	for i, name := range names(n) {
		list[i] = serving.ModelID{Model: name, Version: "1"}
		if s.Single {
			list[i] = serving.ModelID{Model: names(1)[0], Version: fmt.Sprint("v", name)}
		}
	}
	return list
}

func (s suite) candidates(n int) []selection.Candidate {
	list := make([]selection.Candidate, n)
	for i, id := range s.ids(n) {
		list[i] = selection.Candidate{ModelID: id, Ready: true, Cost: 1, Median: time.Millisecond, P95: 3 * time.Millisecond}
	}
	return list
}

func (s suite) query(seed uint64) *selection.Query {
	return &selection.Query{
		User: "ann", Input: s.Input, Budget: 20 * time.Millisecond,
		Now: time.Unix(1e9, 0), Rand: rand.New(rand.NewPCG(seed, 1)),
	}
}

// fresh is a policy for n models and its state, which is nil if it has none.
func (s suite) fresh(n int) (selection.Policy, *selection.State) {
	p := s.New(s.links(n))
	if l, learns := p.(selection.Learner); learns {
		return p, l.New(s.ids(n))
	}
	return p, nil
}

// taught is a policy for n models that has seen feedback, the first models being
// right the most often.
func (s suite) taught(n, rounds int, seed uint64) (selection.Policy, *selection.State) {
	p, state := s.fresh(n)
	if l, learns := p.(selection.Learner); learns {
		state = s.teach(l, state, n, rounds, seed)
	}
	return p, state
}

// teach lets a policy choose and says how it went, like an app that always gets
// feedback.
func (s suite) teach(l selection.Learner, state *selection.State, n, rounds int, seed uint64) *selection.State {
	q, candidates := s.query(seed), s.candidates(n)
	for round := range rounds {
		var plan selection.Plan
		l.Select(state, q, candidates, &plan)
		f := &selection.Feedback{QueryID: int64(round + 1), User: q.User, Input: q.Input, Label: s.Output(0)}
		for _, ask := range plan.Asks[:asked(&plan)] {
			wrong := 0.0
			if q.Rand.Float64() < float64(ask.Candidate+1)/float64(n+1) {
				wrong = 1
			}
			f.Outcomes = append(f.Outcomes, selection.Outcome{
				ModelID: ask.ID, Probability: ask.Probability, Output: s.Output(wrong), Loss: wrong, Judged: true,
			})
			f.Loss = wrong
		}
		state = l.Train(state, f)
	}
	return state
}

// asked is how many of a plan are asked at once.
func asked(p *selection.Plan) int {
	if p.Now == 0 {
		return len(p.Asks)
	}
	return min(p.Now, len(p.Asks))
}
