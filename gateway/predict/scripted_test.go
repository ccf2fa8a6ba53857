package predict

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// scripted is a policy that asks all candidates and does what a test says. Unset, it
// waits for all and answers with the first output in order.
type scripted struct {
	arrange func(candidates []selection.Candidate, plan *selection.Plan)
	combine func(answers []selection.Answer, at selection.Moment) selection.Decision

	mu    sync.Mutex // guards the following
	looks []selection.Moment
	asked [][]selection.Candidate
}

func (s *scripted) Select(_ *selection.State, _ *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	for i := range candidates {
		plan.Add(i, &candidates[i], 0.5, float64(i+1))
	}
	if s.arrange != nil {
		s.arrange(candidates, plan)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, slices.Clone(candidates))
}

func (s *scripted) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	s.mu.Lock()
	s.looks = append(s.looks, at)
	s.mu.Unlock()
	if len(answers) != len(plan.Asks) {
		panic("the answers are not those of the plan")
	}
	if s.combine != nil {
		return s.combine(answers, at)
	}
	return all(answers, at)
}

// all waits for all answers, and takes the first output in order.
func all(answers []selection.Answer, at selection.Moment) selection.Decision {
	d := firstOutput(answers)
	d.Done, d.Ended = true, selection.EndedAll
	if at.Final {
		d.Ended = selection.EndedDeadline
	}
	for i := range answers {
		d.Done = d.Done && answers[i].Come()
	}
	return d
}

// firstOutput is a verdict of the first output in order, or of the first failure.
func firstOutput(answers []selection.Answer) (d selection.Decision) {
	for i := range answers {
		if d.Failure == nil {
			d.Failure = answers[i].Failure
		}
		if answers[i].Output != nil {
			d.Output, d.Failure = answers[i].Output, nil
			return d
		}
	}
	return d
}

// acceptable takes the first output that comes as good enough.
func acceptable(answers []selection.Answer, at selection.Moment) selection.Decision {
	d := all(answers, at)
	if d.Output != nil {
		d.Done, d.Ended = true, selection.EndedAcceptable
	}
	return d
}

func (s *scripted) moments() []selection.Moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.looks)
}

var (
	a1 = id("a", "1")
	b1 = id("b", "1")
	c1 = id("c", "1")
)

// decides registers the app "app", linked to the models of these versions, with a policy
// that the test plays.
func (r *rig) decides(s *scripted, versions ...serving.ModelID) {
	r.Helper()
	r.links(func(a *serving.App) { a.Policy.Kind = serving.PolicyVote }, versions...)
	apps := maps.Clone(*r.p.apps.Load())
	app := *apps["app"]
	app.policy = s
	apps["app"] = &app
	r.p.apps.Store(&apps)
}

// links registers the app "app", linked to the models of these versions.
func (r *rig) links(change func(a *serving.App), versions ...serving.ModelID) {
	r.Helper()
	a := newApp("app")
	byModel := map[string][]serving.ModelID{}
	for _, v := range versions {
		if byModel[v.Model] == nil {
			a.Models = append(a.Models, v.Model)
		}
		byModel[v.Model] = append(byModel[v.Model], v)
	}
	change(a)
	var models []*serving.Model
	for _, list := range byModel {
		models = append(models, newModel(list...))
	}
	r.set(newCatalog([]*serving.App{a}, models...))
}

// by is the behaviour of each model.
func by(models map[string]behaviour) behaviour {
	return func(q arrival) (rpc.Answer, time.Duration) { return models[q.version.Model](q) }
}

// says answers with a number, whatever is asked.
func says(x float64, after time.Duration) behaviour {
	return func(arrival) (rpc.Answer, time.Duration) { return number(x), after }
}

// named are the models among ids, in their order.
func named(ids []serving.ModelID) (models string) {
	for _, id := range ids {
		models += id.Model
	}
	return models
}
