package traffic

import (
	"math"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

const (
	answersName   = "topsail_gateway_answers_total"
	secondsName   = "topsail_gateway_query_seconds"
	cacheName     = "topsail_gateway_cache_total"
	objectiveName = "topsail_gateway_objective_seconds"
)

// causes is how many causes an answer can have; serving.OK is one of them.
const causes = int(serving.Dropped) + 1

// tally is what a gateway has counted for one app, since it started or within a time.
type tally struct {
	answers   [causes]float64
	asked     float64 // questions to models
	hits      float64 // of these, what the cache answered
	took      histogram
	objective time.Duration
}

// readTallies finds the apps in the metrics of a gateway.
func readTallies(families []*obs.Family) map[string]*tally {
	all := map[string]*tally{}
	of := func(s *obs.Sample) *tally {
		app := label(s, "app")
		t := all[app]
		if t == nil {
			t = &tally{}
			all[app] = t
		}
		return t
	}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			switch f.GetName() {
			case answersName:
				of(s).readAnswers(s)
			case cacheName:
				of(s).readCache(s)
			case objectiveName:
				of(s).objective = seconds(s.GetGauge().GetValue())
			case secondsName:
				if h, ok := readHistogram(s.GetHistogram()); ok {
					of(s).took = h
				}
			}
		}
	}
	delete(all, "")
	return all
}

func (t *tally) readAnswers(s *obs.Sample) {
	name := label(s, "cause")
	for _, c := range serving.Causes() {
		if c.String() == name {
			t.answers[c] = number(s.GetCounter().GetValue())
		}
	}
}

func (t *tally) readCache(s *obs.Sample) {
	n := number(s.GetCounter().GetValue())
	t.asked += n
	if result := label(s, "result"); result == "hit" || result == "joined" {
		t.hits += n
	}
}

// since is what was counted after before. A gateway that started anew, or an app that
// was made anew, counts from nothing. That shows where it has counted less than before;
// where it does not, too little is taken to have been counted, and never too much.
func (t *tally) since(before *tally) *tally {
	if before == nil || t.anew(before) {
		return t
	}
	d := *t
	for i := range d.answers {
		d.answers[i] -= before.answers[i]
	}
	d.asked -= before.asked
	d.hits -= before.hits
	d.took = histogram{}
	if t.took.alike(before.took) {
		d.took = histogram{bounds: t.took.bounds, counts: slices.Clone(t.took.counts)}
		for i, n := range before.took.counts {
			d.took.counts[i] -= n
		}
	}
	return &d
}

// anew says whether anything that only grows has become less.
func (t *tally) anew(before *tally) bool {
	for i, n := range t.answers {
		if n < before.answers[i] {
			return true
		}
	}
	if t.took.alike(before.took) {
		for i, n := range t.took.counts {
			if n < before.took.counts[i] {
				return true
			}
		}
	}
	return t.asked < before.asked || t.hits < before.hits
}

// label is the value of a sample's label, or empty.
func label(s *obs.Sample, name string) string {
	for _, l := range s.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// number is a count as it is exposed, and 0 for what cannot be one.
func number(v float64) float64 {
	if !(v >= 0) || math.IsInf(v, 1) {
		return 0
	}
	return v
}

// longest bounds durations that are read.
const longest = 24 * time.Hour

func seconds(v float64) time.Duration {
	return time.Duration(min(number(v), longest.Seconds()) * float64(time.Second))
}
