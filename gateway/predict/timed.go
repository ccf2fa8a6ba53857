package predict

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/timing"
)

// watch has the times noted that t wants, which may be nil.
func (q *query) watch(t *timing.Timing) {
	if t == nil {
		return
	}
	q.timing, q.watched = t, true
	t.Selected = time.Now()
}

// time says where the time went of the attempt that decided the answer, which is made now.
func (q *query) time(now time.Time) {
	t := q.timing
	t.Combined = now
	if q.app.stages != nil {
		t.Heard, t.Model = now, q.verdict.Model
		return
	}
	i := q.deciding()
	if i < 0 {
		return
	}
	try := &q.attempts[i]
	t.Model, t.Selected, t.Looked, t.Cache = try.version.ModelID, try.asked, try.asked.Add(try.looked), q.cacheNote(try)
	if try.flight == nil {
		return
	}
	t.Heard = now
	if q.answers[i].Come() && try.took > 0 {
		t.Heard = try.asked.Add(try.took)
	}
	if try.call == nil {
		return
	}
	switch h := try.call.Last(); {
	case h.Target == nil: // it was held to the end
	case h.At.IsZero():
		t.Sent, t.Replica = h.Sent, h.Target.Replica()
	default:
		t.Sent, t.Heard, t.Service, t.Replica = h.Sent, h.At, h.Service, h.Target.Replica()
	}
}

// deciding is the attempt that the answer is made of; of several the one that came last,
// and without any the first that was asked. It is -1 where none was.
func (q *query) deciding() int {
	decided, latest := -1, time.Time{}
	for i := range q.attempts[:q.opened] {
		try := &q.attempts[i]
		if try.shed || q.plan.Asks[i].Shadow || try.asked.IsZero() {
			continue
		}
		var came time.Time
		if q.answers[i].Output != nil {
			came = try.asked.Add(try.took)
			if q.plan.Asks[i].ID == q.verdict.Model {
				return i
			}
		}
		if decided < 0 || came.After(latest) {
			decided, latest = i, came
		}
	}
	return decided
}

// cacheNote says what the cache had to do with an attempt.
func (q *query) cacheNote(try *attempt) string {
	switch {
	case q.NoCache || q.app.Cache.Off:
		return "off"
	case try.flight == nil:
		return "hit"
	case try.call == nil:
		return "joined"
	}
	return "missed"
}
