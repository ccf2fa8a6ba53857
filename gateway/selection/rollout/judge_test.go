package rollout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

var pair = candidates("m:1", "m:2")

func canary() (*Versions, *selection.State) {
	v := NewVersions(serving.PolicySpec{Canary: "2"}, links)
	return v, v.New(ids(pair))
}

func tally(version string, answers, failures, missed float64) selection.Tally {
	return selection.Tally{ModelID: serving.ModelID{Model: "m", Version: version}, Answers: answers, Failures: failures, Missed: missed}
}

func observe(v *Versions, s *selection.State, list ...selection.Tally) *selection.State {
	return v.Observe(s, list, time.Unix(1e9, 0))
}

// isStopped checks that the state, what it explains and what is asked say the same.
func isStopped(t rapid.TB, v *Versions, s *selection.State) bool {
	t.Helper()
	withdrawn := v.withdrawn(s, serving.ModelID{Model: "m", Version: "2"})
	share := v.Explain(s)[1].Share
	if withdrawn != (share == 0) || withdrawn != strings.Contains(s.Note, "version 2 was withdrawn: ") {
		t.Fatalf("withdrawn %v, its share is %v, and the note %q", withdrawn, share, s.Note)
	}
	for seed := range uint64(5) {
		var plan selection.Plan
		v.Select(s, query(seed), pair, &plan)
		for _, ask := range plan.Asks {
			if ask.ID.Version == "2" && withdrawn {
				t.Fatal("it is withdrawn and asked")
			}
		}
	}
	return withdrawn
}

func TestABrokenCanaryIsStopped(t *testing.T) {
	for name, test := range map[string]struct {
		before []selection.Tally // what was seen first
		after  []selection.Tally // enough to stop it
		reason string
	}{
		"failing":                     {[]selection.Tally{tally("1", 380, 0, 0), tally("2", 0, 19, 0)}, []selection.Tally{tally("2", 0, 1, 0)}, "100 % of its last 20 answers failed or came late, against 0 % before"},
		"late":                        {[]selection.Tally{tally("1", 380, 0, 0), tally("2", 0, 0, 19)}, []selection.Tally{tally("2", 0, 0, 1)}, "100 %"},
		"with a baseline of few":      {[]selection.Tally{tally("1", 1, 0, 0), tally("2", 0, 19, 0)}, []selection.Tally{tally("2", 0, 31, 0)}, "100 %"},
		"without a baseline":          {[]selection.Tally{tally("2", 0, 19, 0)}, []selection.Tally{tally("2", 0, 1, 0)}, "against nothing"},
		"half of the time":            {[]selection.Tally{tally("1", 900, 50, 0)}, []selection.Tally{tally("2", 25, 15, 10)}, "50 % of its last 50"},
		"after a good day":            {[]selection.Tally{tally("1", 1e6, 0, 0), tally("2", 5e4, 0, 0)}, []selection.Tally{tally("2", 0, 50, 0)}, "11 %"},
		"after a good day, by itself": {[]selection.Tally{tally("1", 1e6, 2e4, 0), tally("2", 4.9e4, 1e3, 0), tally("2", 0, 30, 0)}, []selection.Tally{tally("2", 0, 20, 0)}, "of its last 400"},
	} {
		t.Run(name, func(t *testing.T) {
			v, s := canary()
			for _, one := range test.before {
				s = observe(v, s, one)
			}
			if isStopped(t, v, s) {
				t.Fatalf("it is withdrawn too early: %s", s.Note)
			}
			for _, one := range test.after {
				s = observe(v, s, one)
			}
			if !isStopped(t, v, s) || !strings.Contains(s.Note, test.reason) {
				t.Fatalf("it is not withdrawn, or for another reason than %q: %q", test.reason, s.Note)
			}
			s = observe(v, s, tally("2", 1e6, 0, 0))
			if !isStopped(t, v, s) {
				t.Error("good answers bring it back")
			}
		})
	}
}

func TestAHealthyCanaryStays(t *testing.T) {
	for name, list := range map[string][]selection.Tally{
		"too few to judge":         {tally("1", 1000, 0, 0), tally("2", 0, 19, 0)},
		"both fail":                {tally("1", 0, 500, 0), tally("2", 0, 500, 0)},
		"the baseline is worse":    {tally("1", 0, 500, 0), tally("2", 500, 0, 0)},
		"worse, and not by enough": {tally("1", 400, 0, 0), tally("2", 365, 35, 0)},
		"three of twenty":          {tally("1", 400, 9, 0), tally("2", 17, 3, 0)},
		"strangers fail":           {tally("1", 400, 0, 0), tally("9", 0, 400, 0)},
	} {
		v, s := canary()
		if s = observe(v, s, list...); isStopped(t, v, s) {
			t.Errorf("%s: %s", name, s.Note)
		}
	}
}

func TestOnlyWhoIsTriedIsStopped(t *testing.T) {
	v := NewVersions(serving.PolicySpec{Weights: map[string]float64{"1": 5, "2": 1, "3": 1}}, links)
	list := candidates("m:1", "m:2", "m:3")
	s := v.New(ids(list))
	s = observe(v, s, tally("1", 500, 0, 0), tally("2", 400, 0, 0), tally("3", 0, 50, 0))
	splits(t, v, s, list, map[string]float64{"1": 5.0 / 6, "2": 1.0 / 6})
	s = observe(v, s, tally("1", 0, 1e5, 0), tally("2", 0, 1e5, 0))
	splits(t, v, s, list, map[string]float64{"1": 5.0 / 6, "2": 1.0 / 6})
	splits(t, v, s, candidates("m:1!", "m:3"), map[string]float64{"3": 1}) // better than nobody
}

func TestACanaryIsStoppedByFeedback(t *testing.T) {
	v, s := canary()
	train := func(version string, loss float64, n int) {
		id := serving.ModelID{Model: "m", Version: version}
		for range n {
			s = v.Train(s, &selection.Feedback{Loss: loss, Outcomes: []selection.Outcome{{ModelID: id, Loss: loss, Judged: true}}})
		}
	}
	train("2", 1, 100)
	if isStopped(t, v, s) {
		t.Error("a loss that there is nothing to compare with stops it")
	}
	v, s = canary()
	train("1", 0.1, 100)
	train("2", 0.9, 19)
	if isStopped(t, v, s) {
		t.Error("it is judged before there is enough feedback")
	}
	train("2", 0.9, 1)
	if !isStopped(t, v, s) || !strings.Contains(s.Note, "mean loss of its last 20 answers is 0.90, against 0.10 before") {
		t.Errorf("the note is %q", s.Note)
	}
}

func TestAnotherCanaryStartsAfresh(t *testing.T) {
	v, s := canary()
	s = observe(v, s, tally("1", 500, 0, 0), tally("2", 0, 50, 0))
	again := NewVersions(serving.PolicySpec{Canary: "2", Share: 0.5, MaxFailures: 0.9}, links)
	if !isStopped(t, again, again.Observe(s, nil, time.Unix(2e9, 0))) {
		t.Error("another share brings a withdrawn canary back")
	}
	other := NewVersions(serving.PolicySpec{Canary: "3", Share: 0.5}, links)
	there := candidates("m:1", "m:2", "m:3")
	s = other.AddModel(s, there[2].ModelID)
	if other.withdrawn(s, there[1].ModelID) {
		t.Error("what was withdrawn in another trial is so in this one")
	}
	splits(t, other, s, candidates("m:1", "m:3"), map[string]float64{"1": 0.5, "3": 0.5}) // before anything is observed
	s = observe(other, s, tally("1", 500, 0, 0))
	if s.Note != "" || other.withdrawn(s, there[1].ModelID) {
		t.Errorf("of the last trial there is left %q", s.Note)
	}
	if shares := other.Explain(s); shares[0].Share != 0.5 || shares[1].Share != 0 || shares[2].Share != 0.5 {
		t.Errorf("the shares are %+v", shares)
	}
}

// The serving version may be another one in the midst of a trial.
func TestTheBaselineIsWhoServesNow(t *testing.T) {
	v, s := canary()
	s = v.AddModel(s, serving.ModelID{Model: "m", Version: "0"})
	s = v.Observe(s, []selection.Tally{tally("1", 500, 0, 0)}, time.Unix(1e9, 0))
	s = v.Observe(s, []selection.Tally{tally("0", 0, 500, 0), tally("2", 0, 500, 0)}, time.Unix(1e9+60, 0))
	if s.Note != "" {
		t.Errorf("it is compared with who served before: %s", s.Note)
	}
	if shares := v.Explain(s); shares[0].Share != 0.95 || shares[1].Share != 0 {
		t.Errorf("the shares are %+v", shares)
	}
}

// An equal version, looked at after every answer, is withdrawn by chance in less than one
// of a hundred trials.
func TestChanceStopsNobody(t *testing.T) {
	const trials, answers = 500, 800
	j := newJudge(&serving.PolicySpec{})
	for _, rate := range []float64{0.01, 0.02, 0.05, 0.2, 0.5} {
		known := conduct{outcomes: memory, bad: rate * memory}
		alike, against := 0, 0
		for seed := range uint64(trials) {
			if isWrong(&j, seed, rate, answers, nil) {
				alike++
			}
			if isWrong(&j, seed, rate, answers, &known) {
				against++
			}
		}
		if alike >= trials/100 || against >= trials/100 {
			t.Errorf("failing at %v: of %d healthy versions %d are withdrawn against one that is as new, and %d against a known one", rate, trials, alike, against)
		}
	}
}

// isWrong says whether a version is withdrawn though it is no worse than the known one, or
// than another one that is drawn.
func isWrong(j *judge, seed uint64, rate float64, answers int, known *conduct) bool {
	r := rand.New(rand.NewPCG(seed, math.Float64bits(rate)))
	var c, baseline conduct
	for range answers {
		if known != nil {
			baseline = *known
		} else {
			baseline.draw(r, rate, j.memory)
		}
		c.draw(r, rate, j.memory)
		if j.finds(&c, &baseline) != "" {
			return true
		}
	}
	return false
}

// A version that fails half of the time is withdrawn within 50 answers, nearly always.
func TestAWorseVersionIsFoundInTime(t *testing.T) {
	const trials = 1000
	j, found := newJudge(&serving.PolicySpec{}), 0
	for seed := range uint64(trials) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, baseline := conduct{}, conduct{outcomes: memory, bad: 0.02 * memory}
		for range 50 {
			c.draw(r, 0.5, j.memory)
			if j.finds(&c, &baseline) != "" {
				found++
				break
			}
		}
	}
	if found < trials*98/100 {
		t.Errorf("%d of %d are found", found, trials)
	}
}

func (c *conduct) draw(r *rand.Rand, rate, memory float64) {
	c.outcomes++
	if r.Float64() < rate {
		c.bad++
	}
	c.fade(memory)
}

// What several gateways count may come in any order and in any packs: within the memory
// nothing is lost and the verdict is the same.
func TestTalliesComeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := func(name string) float64 { return float64(rapid.IntRange(0, 12).Draw(t, name)) }
		var all []selection.Tally
		for i := range rapid.IntRange(1, 10).Draw(t, "tallies") {
			all = append(all, tally(fmt.Sprint(1+i%2), count("answers"), count("failures"), count("missed")))
		}
		v, start := canary()
		together := observe(v, start, all...)
		other := observe(v, start, rapid.Permutation(all).Draw(t, "order")...)
		if a, b := encode(t, together), encode(t, other); a != b {
			t.Fatalf("in another order the state is\n%s, not\n%s", b, a)
		}
		one := start
		for _, tally := range rapid.Permutation(all).Draw(t, "one by one") {
			one = observe(v, one, tally)
		}
		for i := range one.Models {
			if one.Models[i].Count != together.Models[i].Count || one.Models[i].Sum != together.Models[i].Sum {
				t.Fatalf("one by one the state is\n%s, not\n%s", encode(t, one), encode(t, together))
			}
		}
		if isStopped(t, v, together) && !isStopped(t, v, one) {
			t.Fatalf("together they stop it, and one by one they do not: %s", together.Note)
		}
	})
}

// Gateways' clocks differ: a ramp that was seen to have come so far is not taken back.
func TestALateClockTakesNothingBack(t *testing.T) {
	v := NewVersions(serving.PolicySpec{Canary: "2", Share: 0.4, RampSeconds: 100}, links)
	s := v.New(ids(pair))
	for _, second := range []int64{0, 50, 49} {
		s = v.Observe(s, []selection.Tally{tally("1", 1, 0, 0)}, time.Unix(1e9+second, 0))
	}
	if share := v.Explain(s)[1].Share; math.Abs(share-0.2) > 1e-9 {
		t.Errorf("the canary's share is said to be %v", share)
	}
}

func encode(t rapid.TB, s *selection.State) string {
	text, err := s.Encode()
	require.NoError(t, err)
	return string(text)
}

func TestHostileTalliesChangeNothing(t *testing.T) {
	v, s := canary()
	s = observe(v, s, tally("1", 100, 0, 0), tally("2", 100, 0, 0))
	want := encode(t, s)
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -5, 1e300} {
		if got := encode(t, observe(v, s, tally("2", x, x, x), tally("1", x, x, x))); got != want {
			t.Errorf("%v makes of the state\n%s, not\n%s", x, got, want)
		}
	}
	if v.Observe(s, nil, time.Unix(2e9, 0)) != s {
		t.Error("without tallies there is a new state to store")
	}
}
