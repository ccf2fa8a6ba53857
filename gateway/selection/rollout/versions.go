package rollout

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

const (
	defaultShare = 0.05
	firstStep    = 1.0 / 20 // of its share that a version has at the start of a ramp
)

// Versions splits the queries between the versions of one model, takes the share from a
// tried version that turns out worse, and asks another version where one fails while
// time remains.
//
// With a canary, that version is tried against whatever else serves. With weights, all
// versions are tried against the one of the largest weight. What has been withdrawn stays
// withdrawn until the policy names others.
type Versions struct {
	tried    map[string]float64 // the share of each version that is tried
	total    float64            // of those shares
	baseline string             // what they are tried against; empty: every version but the canary
	ramp     time.Duration
	sticky   bool
	judge    judge
	trial    float64 // names what is tried, in states: others begin afresh
}

// NewVersions makes the policy "versions". The defaults are a share of 0.05, 20 answers
// before a version is judged, and 0.1 by which failures or the mean loss may be worse.
func NewVersions(spec serving.PolicySpec, links []string) *Versions {
	v := &Versions{ramp: spec.Ramp(), sticky: spec.Sticky, judge: newJudge(&spec)}
	v.tried = map[string]float64{spec.Canary: cmp.Or(spec.Share, defaultShare)}
	if spec.Canary == "" {
		v.tried, v.baseline = split(spec.Weights)
	}
	for _, version := range slices.Sorted(maps.Keys(v.tried)) {
		v.total += v.tried[version]
	}
	v.trial = v.name(links)
	return v
}

// split makes shares of the weights, and sets the largest apart.
func split(weights map[string]float64) (tried map[string]float64, baseline string) {
	total, largest := 0.0, -1.0
	for _, version := range slices.Sorted(maps.Keys(weights)) {
		total += weights[version]
		if weights[version] > largest {
			baseline, largest = version, weights[version]
		}
	}
	tried = make(map[string]float64, len(weights))
	for version, weight := range weights {
		if version != baseline && total > 0 {
			tried[version] = weight / total
		}
	}
	return tried, baseline
}

// name is a number for the trial, the same at every gateway: what is judged in it holds
// for no other.
func (v *Versions) name(links []string) float64 {
	h := hash(v.baseline)
	for _, version := range slices.Sorted(maps.Keys(v.tried)) {
		h = fnv1a(h, version)
	}
	for _, model := range slices.Sorted(slices.Values(links)) {
		h = fnv1a(h, model)
	}
	return float64(h >> 11) // exact, as a number in JSON
}

// Select implements selection.Policy. The order is drawn by shares without putting back:
// each has a number drawn from the exponential distribution with its share as the rate,
// and the smallest comes first. So a share that grows takes queries over and hands none
// on, also where the draw is made by the user.
func (v *Versions) Select(s *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	progress := v.progress(s, q.Now)
	for need := healthy; need <= anyone && len(plan.Asks) == 0; need++ {
		v.rank(need, progress, s, q, candidates, plan)
	}
	plan.Alone, plan.Now = true, min(1, len(plan.Asks))
}

// What is asked of candidates; less only where none has it.
const (
	healthy = iota // ready, and not withdrawn
	ready
	anyone
)

func (v *Versions) rank(need int, progress float64, s *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	total, user := 0.0, uint64(0)
	if v.sticky && q.User != "" {
		user = hash(q.User)
	}
	for i := range candidates {
		c := &candidates[i]
		if need < anyone && !c.Ready || need == healthy && v.withdrawn(s, c.ModelID) {
			continue
		}
		share := v.share(c.Version, progress)
		total += share
		plan.Add(i, c, share, draw(q, user, c.ModelID)/share)
	}
	slices.SortFunc(plan.Asks, func(a, b selection.Ask) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), a.Candidate-b.Candidate)
	})
	for i := range plan.Asks {
		ask := &plan.Asks[i]
		ask.Weight = 1
		if ask.Probability == 0 {
			ask.Probability = 1 // in reserve: it is asked when the others have failed
		} else {
			ask.Probability /= total
		}
	}
}

// share is a version's part of the queries, before it is known which versions are ready.
func (v *Versions) share(version string, progress float64) float64 {
	if share, tried := v.tried[version]; tried {
		return share * progress
	}
	if v.baseline != "" && version != v.baseline {
		return 0 // the serving version, which the weights do not name
	}
	return max(1-v.total*progress, 0)
}

// progress is how far the ramp is, from firstStep to 1.
func (v *Versions) progress(s *selection.State, now time.Time) float64 {
	if v.ramp == 0 {
		return 1
	}
	began := v.trialOf(s).began
	if began == 0 {
		return firstStep
	}
	return min(max((seconds(now)-began)/v.ramp.Seconds(), firstStep), 1)
}

// draw is above 0: by the user's hash where there is one, else by chance.
func draw(q *selection.Query, user uint64, id serving.ModelID) float64 {
	if user != 0 {
		return -math.Log(uniform(user, id))
	}
	return max(q.Rand.ExpFloat64(), math.SmallestNonzeroFloat64)
}

// Combine implements selection.Policy.
func (v *Versions) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	if len(plan.Asks) == 0 {
		return unanswered()
	}
	if v.late(plan, answers, at) {
		return v.relieve(plan, answers)
	}
	d := first(plan, answers, len(answers), at)
	if !d.Done && v.onTrial(plan) && len(plan.Asks) > 1 {
		d.Again = patience(at.Budget)
	}
	return d
}

// patience is how long a version on trial is waited for before another one is asked as
// well: no query is to get a default because of it.
func patience(budget time.Duration) time.Duration { return budget * 3 / 4 }

// onTrial says whether the version that is asked first is tried.
func (v *Versions) onTrial(plan *selection.Plan) bool {
	_, tried := v.tried[plan.Asks[0].ID.Version]
	return tried
}

// late says whether a version on trial has been silent for too long.
func (v *Versions) late(plan *selection.Plan, answers []selection.Answer, at selection.Moment) bool {
	return !at.Final && len(plan.Asks) > 1 && v.onTrial(plan) && !answers[0].Come() && at.Elapsed >= patience(at.Budget)
}

// relieve answers with the version in reserve, where the one on trial is late.
func (v *Versions) relieve(plan *selection.Plan, answers []selection.Answer) selection.Decision {
	if a := &answers[1]; a.Output != nil {
		return selection.Decision{Done: true, Verdict: selection.Verdict{
			Output: a.Output, Model: plan.Asks[1].ID, Confidence: selection.Confidence(a.Output), Ended: selection.EndedTime,
		}}
	}
	return selection.Decision{Open: 2}
}
