package traffic

import (
	"math"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// causes is how many causes an answer can have; serving.OK is one of them.
const causes = int(serving.LastCause) + 1

// tally is what a gateway has counted for one app, since it started or within a time.
type tally struct {
	answers   [causes]float64
	asked     float64 // questions to models
	hits      float64 // of these, what the cache answered
	took      histogram
	objective time.Duration
	models    map[serving.ModelID]asking // nil: it does not choose
}

// asking is what came of asking a model for an app: how often it was asked, answered in time, and agreed with the answer.
type asking [3]float64

// askingEvents are the labels of its numbers.
var askingEvents = [len(asking{})]string{"asked", "answered", "agreed"}

func (t *tally) readModels(s *obs.Series) {
	at := slices.Index(askingEvents[:], s.Label("event"))
	if at < 0 {
		return
	}
	if t.models == nil {
		t.models = map[serving.ModelID]asking{}
	}
	n := t.models[idOf(s)]
	n[at] = number(s.Value)
	t.models[idOf(s)] = n
}

func (t *tally) readAnswers(s *obs.Series) {
	name := s.Label("cause")
	for c := range t.answers {
		if serving.Cause(c).String() == name {
			t.answers[c] = number(s.Value)
		}
	}
}

func (t *tally) readCache(s *obs.Series) {
	n := number(s.Value)
	t.asked += n
	if result := s.Label("result"); result == "hit" || result == "joined" {
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
	d.took, _ = t.took.since(before.took)
	d.models = make(map[serving.ModelID]asking, len(t.models))
	for id, n := range t.models {
		for i, already := range before.models[id] {
			if n[i] >= already { // else its series began anew
				n[i] -= already
			}
		}
		d.models[id] = n
	}
	return &d
}

// same says whether nothing was counted between before and t.
func (t *tally) same(before *tally) bool {
	return before != nil && t.answers == before.answers && t.asked == before.asked && t.hits == before.hits &&
		slices.Equal(t.took, before.took)
}

// anew says whether anything that only grows has become less.
func (t *tally) anew(before *tally) bool {
	for i, n := range t.answers {
		if n < before.answers[i] {
			return true
		}
	}
	return t.asked < before.asked || t.hits < before.hits || t.took.less(before.took)
}

// number is a count as it is exposed, and 0 for what cannot be one.
func number(v float64) float64 {
	if !(v >= 0) || math.IsInf(v, 1) {
		return 0
	}
	return v
}

// count is a gauge of whole things.
func count(s *obs.Series) int { return int(min(number(s.Value), math.MaxInt32)) }

// longest bounds durations that are read.
const longest = 24 * time.Hour

func seconds(v float64) time.Duration {
	return time.Duration(min(number(v), longest.Seconds()) * float64(time.Second))
}
