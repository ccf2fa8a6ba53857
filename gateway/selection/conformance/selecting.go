package conformance

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func (s suite) noCandidate(t *testing.T) {
	p, state := s.fresh(2)
	var plan selection.Plan
	p.Select(state, s.query(1), nil, &plan)
	if len(plan.Asks) != 0 {
		t.Fatalf("asks %v of no candidates", plan.Asks)
	}
	d := p.Combine(state, &plan, nil, selection.Moment{Budget: s.query(1).Budget})
	if !d.Done || d.Output != nil || d.Failure == nil || d.Failure.Cause != serving.NoReplica {
		t.Errorf("without candidates it decides %+v, not that there is no replica", d)
	}
}

func (s suite) oneModel(t *testing.T) {
	p, state := s.taught(1, 50, 1)
	var plan selection.Plan
	p.Select(state, s.query(1), s.candidates(1), &plan)
	checkPlan(t, s, &plan, s.candidates(1))
	answers := []selection.Answer{{Output: s.Output(3)}}
	d := p.Combine(state, &plan, answers, selection.Moment{Budget: s.query(1).Budget})
	if !d.Done || d.Failure != nil || d.Output == nil && !s.Declines {
		t.Errorf("with the one answer it decides %+v", d)
	}
	answers[0] = selection.Answer{Failure: &serving.Failure{Cause: serving.ModelError}}
	if d := p.Combine(state, &plan, answers, selection.Moment{Final: true}); !d.Done || d.Output != nil {
		t.Errorf("with the one model failed it decides %+v", d)
	}
	if d := p.Combine(state, &plan, make([]selection.Answer, 1), selection.Moment{Final: true}); !d.Done || d.Output != nil {
		t.Errorf("with the one model silent it decides %+v", d)
	}
}

func (s suite) thousandModels(t *testing.T) {
	const n = 1000
	p, state := s.taught(n, 20, 1)
	var plan selection.Plan
	p.Select(state, s.query(2), s.candidates(n), &plan)
	checkPlan(t, s, &plan, s.candidates(n))
	answers := make([]selection.Answer, len(plan.Asks))
	for i := range answers {
		answers[i].Output = s.Output(float64(i % 3))
	}
	if d := p.Combine(state, &plan, answers, selection.Moment{Final: true}); !d.Done || d.Output == nil && !s.Declines {
		t.Errorf("with a thousand answers it decides %+v", d)
	}
	if l, learns := p.(selection.Learner); learns {
		checkState(t, l, state)
	}
}

// plans draws what is known, and which models exist and are ready.
func (s suite) plans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "models")
		p, state := s.taught(n, rapid.IntRange(0, 20).Draw(t, "rounds"), rapid.Uint64().Draw(t, "seed"))
		candidates := s.drawCandidates(t, n)
		q := s.query(rapid.Uint64().Draw(t, "query seed"))
		var plan selection.Plan
		for range 3 {
			plan.Reset()
			p.Select(state, q, candidates, &plan)
			checkPlan(t, s, &plan, candidates)
		}
	})
}

func (s suite) drawCandidates(t *rapid.T, n int) []selection.Candidate {
	candidates := s.candidates(n)
	for i := range candidates {
		candidates[i].Ready = rapid.Bool().Draw(t, "ready")
		candidates[i].Cost = rapid.Float64Range(0.01, 100).Draw(t, "cost")
	}
	gone := rapid.IntRange(0, n-1).Draw(t, "gone") // any may be missing, but one
	return slices.Delete(candidates, 0, gone)
}

// checkPlan checks what holds for every plan.
func checkPlan(t rapid.TB, s suite, plan *selection.Plan, candidates []selection.Candidate) {
	t.Helper()
	if len(plan.Asks) == 0 && len(candidates) > 0 && !s.Single {
		t.Fatal("no model is asked, though there are candidates")
	}
	if plan.Now < 0 || plan.Now > len(plan.Asks) {
		t.Fatalf("%d of %d asks are for now", plan.Now, len(plan.Asks))
	}
	seen := map[int]bool{}
	for i, ask := range plan.Asks {
		switch {
		case ask.Candidate < 0 || ask.Candidate >= len(candidates) || candidates[ask.Candidate].ModelID != ask.ID:
			t.Fatalf("ask %+v is of no candidate", ask)
		case seen[ask.Candidate]:
			t.Fatalf("candidate %d is asked twice", ask.Candidate)
		case !(ask.Probability > 0 || ask.Probability == 0 && s.Uncounted) || ask.Probability > 1+1e-9:
			t.Fatalf("probability %v of ask %d is none", ask.Probability, i)
		case math.IsNaN(ask.Weight) || math.IsInf(ask.Weight, 0):
			t.Fatalf("weight %v of ask %d is none", ask.Weight, i)
		case ask.HedgeAfter < 0 || i == 0 && ask.Shadow:
			t.Fatalf("ask %d cannot be %+v", i, ask)
		}
		seen[ask.Candidate] = true
	}
}

func (s suite) readiness(t *testing.T) {
	p, state := s.taught(4, 30, 1)
	candidates := s.candidates(4)
	for i := range candidates {
		candidates[i].Ready = i == 2
	}
	q := s.query(3)
	for range 50 {
		var plan selection.Plan
		p.Select(state, q, candidates, &plan)
		for _, ask := range plan.Asks[:asked(&plan)] {
			if !ask.Shadow && !ask.Absent && !candidates[ask.Candidate].Ready {
				t.Fatalf("%v has no replica and is asked, though %v has one", ask.ID, candidates[2].ModelID)
			}
		}
	}
}

func (s suite) orderOfLinks(t *testing.T) {
	if s.Ordered {
		return
	}
	const n = 5
	p, state := s.taught(n, 40, 1)
	links := s.links(n)
	rapid.Check(t, func(t *rapid.T) {
		other := s.New(rapid.Permutation(links).Draw(t, "links"))
		seed := rapid.Uint64().Draw(t, "seed")
		var a, b selection.Plan
		p.Select(state, s.query(seed), s.candidates(n), &a)
		other.Select(state, s.query(seed), s.candidates(n), &b)
		checkSame(t, &a, &b)
	})
}

func (s suite) sameSeed(t *testing.T) {
	p, state := s.taught(5, 40, 1)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		var a, b selection.Plan
		b.Asks, b.Scratch = make([]selection.Ask, 0, 64), slices.Repeat([]float64{7}, 64)[:0] // memory that was used before
		p.Select(state, s.query(seed), s.candidates(5), &a)
		p.Select(state, s.query(seed), s.candidates(5), &b)
		checkSame(t, &a, &b)
	})
}

func checkSame(t rapid.TB, a, b *selection.Plan) {
	t.Helper()
	if a.Now != b.Now || !reflect.DeepEqual(a.Asks, b.Asks) {
		t.Fatalf("the same query is planned as\n%+v and as\n%+v", a, b)
	}
}

func (s suite) memory(t *testing.T) {
	p, state := s.taught(10, 40, 1)
	q, candidates, answers := s.query(4), s.candidates(10), make([]selection.Answer, 10)
	for i := range answers {
		answers[i].Output = s.Output(float64(i % 2))
	}
	var plan selection.Plan
	got := testing.AllocsPerRun(500, func() {
		plan.Reset()
		p.Select(state, q, candidates, &plan)
		p.Combine(state, &plan, answers[:len(plan.Asks)], selection.Moment{Budget: q.Budget})
	})
	if got > s.Allocs {
		t.Errorf("Select and Combine allocate %v times, not %v", got, s.Allocs)
	}
}

// concurrency is for the race detector.
func (s suite) concurrency(t *testing.T) {
	p, state := s.taught(4, 20, 1)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			rounds := rand.New(rand.NewPCG(uint64(i), 0)).IntN(10) + 10
			for round := range rounds {
				var plan selection.Plan
				p.Select(state, s.query(uint64(round)), s.candidates(4), &plan)
				p.Combine(state, &plan, make([]selection.Answer, len(plan.Asks)), selection.Moment{Final: true})
			}
			if l, learns := p.(selection.Learner); learns {
				s.teach(l, state, 4, rounds, uint64(i))
				l.Explain(state)
			}
		})
	}
	all.Wait()
}
