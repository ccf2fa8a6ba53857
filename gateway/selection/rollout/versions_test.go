package rollout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

var links = []string{"m"}

func query(seed uint64) *selection.Query {
	return &selection.Query{Budget: time.Second, Now: time.Unix(1e9, 0), Rand: rand.New(rand.NewPCG(seed, 2))}
}

func ids(list []selection.Candidate) (ids []serving.ModelID) {
	for _, c := range list {
		ids = append(ids, c.ModelID)
	}
	return ids
}

// within checks a count of independent draws: it is five standard deviations off the
// share at the most.
func within(t *testing.T, what string, got, n int, share float64) {
	t.Helper()
	mean, sigma := float64(n)*share, math.Sqrt(float64(n)*share*(1-share))
	if math.Abs(float64(got)-mean) > 5*sigma+1e-9 {
		t.Errorf("%s: %d of %d, not near a share of %.3f", what, got, n, share)
	}
}

// splits checks how queries of many users, or of none, are split.
func splits(t *testing.T, v *Versions, s *selection.State, list []selection.Candidate, want map[string]float64) {
	t.Helper()
	const n = 20_000
	q, got := query(1), map[string]int{}
	var plan selection.Plan
	for i := range n {
		plan.Reset()
		if v.sticky {
			q.User = fmt.Sprint("user", i)
		}
		v.Select(s, q, list, &plan)
		first := &plan.Asks[0]
		got[first.ID.Version]++
		if share := want[first.ID.Version]; plan.Now != 1 || math.Abs(first.Probability-share) > 1e-9 {
			t.Fatalf("the plan is %+v, and its share %v", plan, share)
		}
	}
	for _, c := range list {
		within(t, c.Version, got[c.Version], n, want[c.Version])
	}
}

func TestQueriesAreSplit(t *testing.T) {
	weights := map[string]float64{"1": 6, "2": 3, "3": 1}
	for name, test := range map[string]struct {
		spec  serving.PolicySpec
		there []selection.Candidate
		want  map[string]float64
	}{
		"a canary":                         {serving.PolicySpec{Canary: "2"}, candidates("m:1", "m:2"), map[string]float64{"1": 0.95, "2": 0.05}},
		"a canary with a share":            {serving.PolicySpec{Canary: "2", Share: 0.25}, candidates("m:1", "m:2"), map[string]float64{"1": 0.75, "2": 0.25}},
		"a canary with all":                {serving.PolicySpec{Canary: "2", Share: 1}, candidates("m:1", "m:2"), map[string]float64{"2": 1}},
		"a canary that is not ready":       {serving.PolicySpec{Canary: "2", Share: 0.5}, candidates("m:1", "m:2!"), map[string]float64{"1": 1}},
		"a canary that is not there":       {serving.PolicySpec{Canary: "2", Share: 0.5}, candidates("m:1"), map[string]float64{"1": 1}},
		"a canary that serves":             {serving.PolicySpec{Canary: "2"}, candidates("m:2"), map[string]float64{"2": 1}},
		"a ramp before its begin":          {serving.PolicySpec{Canary: "2", Share: 0.4, RampSeconds: 60}, candidates("m:1", "m:2"), map[string]float64{"1": 0.98, "2": 0.02}},
		"weights":                          {serving.PolicySpec{Weights: weights}, candidates("m:1", "m:2", "m:3"), map[string]float64{"1": 0.6, "2": 0.3, "3": 0.1}},
		"weights, one not ready":           {serving.PolicySpec{Weights: weights}, candidates("m:1!", "m:2", "m:3"), map[string]float64{"2": 0.75, "3": 0.25}},
		"weights, and who serves is not":   {serving.PolicySpec{Weights: weights}, candidates("m:0", "m:2", "m:3"), map[string]float64{"2": 0.75, "3": 0.25}},
		"weights of others than who serve": {serving.PolicySpec{Weights: weights}, candidates("m:0", "m:2!"), map[string]float64{"0": 1}},
		"nobody is ready":                  {serving.PolicySpec{Weights: weights}, candidates("m:1!", "m:2!", "m:3!"), map[string]float64{"1": 0.6, "2": 0.3, "3": 0.1}},
	} {
		for _, sticky := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", sticky ", sticky), func(t *testing.T) {
				test.spec.Sticky = sticky
				v := NewVersions(test.spec, links)
				splits(t, v, v.New(ids(test.there)), test.there, test.want)
			})
		}
	}
}

// A user stays with a version, and while the canary's share grows, users only go to it:
// also when another version is not ready, or comes back.
func TestUsersStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := query(1)
		q.User = rapid.StringN(1, 20, -1).Draw(t, "user")
		share := rapid.Float64Range(0.01, 1).Draw(t, "share")
		v := NewVersions(serving.PolicySpec{Canary: "2", Share: share, RampSeconds: 1000, Sticky: true}, links)
		list := candidates("m:1", "m:2")
		s := v.Observe(v.New(ids(list)), nil, q.Now)
		before := ""
		for second := range 1100 {
			if second%100 != 0 {
				continue
			}
			at := *q
			at.Now, at.Rand = q.Now.Add(time.Duration(second)*time.Second), rand.New(rand.NewPCG(uint64(second), 1))
			got := firstAsked(v, s, &at, list)
			if before == "m:2" && got != "m:2" {
				t.Fatalf("in second %d the user leaves the canary", second)
			}
			before = got
		}
	})
}

func firstAsked(v *Versions, s *selection.State, q *selection.Query, list []selection.Candidate) string {
	var plan selection.Plan
	v.Select(s, q, list, &plan)
	return plan.Asks[0].ID.String()
}

func TestARampGrowsFromTheFirstSight(t *testing.T) {
	v := NewVersions(serving.PolicySpec{Canary: "2", Share: 0.4, RampSeconds: 100}, links)
	list, start := candidates("m:1", "m:2"), time.Unix(1e9, 0)
	s := v.Observe(v.New(ids(list)), nil, start)
	s = v.Observe(s, nil, start.Add(time.Hour)) // it has begun already
	for after, want := range map[int]float64{-50: 0.02, 0: 0.02, 5: 0.02, 25: 0.1, 50: 0.2, 100: 0.4, 1000: 0.4} {
		q := query(1)
		q.Now = start.Add(time.Duration(after) * time.Second)
		var plan selection.Plan
		v.Select(s, q, list, &plan)
		for _, ask := range plan.Asks {
			if ask.ID.Version == "2" && math.Abs(ask.Probability-want) > 1e-9 {
				t.Errorf("after %d s the canary's share is %v, not %v", after, ask.Probability, want)
			}
		}
	}
}

func TestAnotherVersionIsAskedWhenOneFails(t *testing.T) {
	v := NewVersions(serving.PolicySpec{Canary: "2", Share: 1}, links)
	list := candidates("m:1", "m:2")
	var plan selection.Plan
	v.Select(v.New(ids(list)), query(1), list, &plan)
	answers := make([]selection.Answer, 2)
	at := selection.Moment{Budget: time.Second}
	if d := v.Combine(nil, &plan, answers, at); d.Done || d.Open > 1 {
		t.Errorf("before anything has come it decides %+v", d)
	}
	answers[0].Failure = &serving.Failure{Cause: serving.ModelError}
	if d := v.Combine(nil, &plan, answers, at); d.Done || d.Open != 2 {
		t.Errorf("after the canary has failed it decides %+v", d)
	}
	if d := v.Combine(nil, &plan, answers, selection.Moment{Final: true}); !d.Done || d.Failure != answers[0].Failure {
		t.Errorf("with the other too slow it decides %+v", d)
	}
	answers[1].Output = &serving.Output{}
	if d := v.Combine(nil, &plan, answers, at); !d.Done || d.Output != answers[1].Output || d.Model.Version != "1" {
		t.Errorf("after the other has answered it decides %+v", d)
	}
	answers[1] = selection.Answer{Failure: &serving.Failure{Cause: serving.Draining}}
	if d := v.Combine(nil, &plan, answers, at); !d.Done || d.Failure != answers[0].Failure {
		t.Errorf("after both have failed it decides %+v", d)
	}
}

func TestUniformIsUniform(t *testing.T) {
	const n, bins = 20_000, 20
	var counts [bins]int
	both := 0
	for i := range n {
		user := hash(fmt.Sprint(i))
		x, y := uniform(user, serving.ModelID{Model: "m", Version: "1"}), uniform(user, serving.ModelID{Model: "m", Version: "2"})
		counts[int(x*bins)]++
		if x < 0.5 && y < 0.5 {
			both++
		}
	}
	for i, count := range counts {
		within(t, fmt.Sprint("bin ", i), count, n, 1.0/bins)
	}
	within(t, "two versions below a half", both, n, 0.25)
}

func BenchmarkVersions(b *testing.B) {
	list := candidates("m:1", "m:2")
	v := NewVersions(serving.PolicySpec{Canary: "2", RampSeconds: 10, Sticky: true}, links)
	benchmark(b, v, v.New(ids(list)), list)
}

func BenchmarkVersionsOf10(b *testing.B) {
	list, weights := candidates("m:0", "m:1", "m:2", "m:3", "m:4", "m:5", "m:6", "m:7", "m:8", "m:9"), map[string]float64{}
	for _, c := range list {
		weights[c.Version] = 1
	}
	v := NewVersions(serving.PolicySpec{Weights: weights, Sticky: true}, links)
	benchmark(b, v, v.New(ids(list)), list)
}

func BenchmarkSingle(b *testing.B) {
	benchmark(b, NewSingle(serving.PolicySpec{}, links), nil, candidates("m:1"))
}

func BenchmarkShadow(b *testing.B) {
	list := candidates("a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "h:1", "i:1", "m:1")
	benchmark(b, NewShadow(serving.PolicySpec{Share: 0.9}, links), nil, list)
}

func benchmark(b *testing.B, p selection.Policy, s *selection.State, list []selection.Candidate) {
	q, answers := query(1), make([]selection.Answer, len(list))
	q.User = "user 4711"
	answers[0].Output = &serving.Output{}
	var plan selection.Plan
	b.ReportAllocs()
	for b.Loop() {
		plan.Reset()
		p.Select(s, q, list, &plan)
		p.Combine(s, &plan, answers[:len(plan.Asks)], selection.Moment{})
	}
}

// A version on trial that is silent costs nobody an answer: another one is asked while
// there is time, and answers if it is the first to.
func TestASilentCanaryIsRelieved(t *testing.T) {
	v := NewVersions(serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "2", Share: 1}, []string{"m"})
	plan := selection.Plan{Asks: []selection.Ask{{ID: serving.ModelID{Model: "m", Version: "2"}}, {ID: serving.ModelID{Model: "m", Version: "1"}}}, Now: 1}
	answers := make([]selection.Answer, 2)
	at := selection.Moment{Elapsed: 10 * time.Millisecond, Budget: 100 * time.Millisecond}
	if d := v.Combine(nil, &plan, answers, at); d.Done || d.Open > 1 || d.Again != 75*time.Millisecond {
		t.Errorf("early: %+v", d)
	}
	at.Elapsed = 75 * time.Millisecond
	if d := v.Combine(nil, &plan, answers, at); d.Done || d.Open != 2 {
		t.Errorf("late: %+v", d)
	}
	out, err := serving.NewOutput(serving.Number(1))
	require.NoError(t, err)
	answers[1].Output = out
	for _, final := range []bool{false, true} {
		at.Final = final
		if d := v.Combine(nil, &plan, answers, at); !d.Done || d.Output != out || d.Model.Version != "1" {
			t.Errorf("relieved, final %v: %+v", final, d)
		}
	}
	// Of one that is not on trial nobody knows better.
	plan.Asks[0].ID.Version, plan.Asks[1].ID.Version = "1", "2"
	if d := v.Combine(nil, &plan, make([]selection.Answer, 2), selection.Moment{Elapsed: 90, Budget: 100}); d.Open > 1 || d.Again != 0 {
		t.Errorf("not on trial: %+v", d)
	}
}

// A version that was withdrawn and has become something else is tried anew: nothing is known
// of it, and nothing said.
func TestAStoppedVersionThatIsAnotherOne(t *testing.T) {
	v := NewVersions(serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "2"}, []string{"m"})
	one, two := serving.ModelID{Model: "m", Version: "1"}, serving.ModelID{Model: "m", Version: "2"}
	now := time.Unix(1_700_000_000, 0)
	s := v.Observe(v.New([]serving.ModelID{one, two}), []selection.Tally{{ModelID: one, Answers: 400}, {ModelID: two, Failures: 400}}, now)
	if !v.withdrawn(s, two) || !strings.Contains(s.Note, "version 2 was withdrawn: ") {
		t.Fatalf("it was not withdrawn: %q", s.Note)
	}
	s.Note += "version 22 was withdrawn: 0.31 is more than 5 %. "
	at := s.FindVersion(two)
	s.Models = slices.Delete(s.Models, at, at+1)
	if s = v.AddModel(s, two); v.withdrawn(s, two) || s.Note != "version 22 was withdrawn: 0.31 is more than 5 %. " {
		t.Errorf("it is withdrawn still, and the note %q", s.Note)
	}
}
