package predict

import (
	"time"

	"topsail/gateway/route"
	"topsail/gateway/timing"
)

// heard is the last answer to a call before it landed.
type heard struct {
	target  *route.Target // nil: none came
	sent    time.Time
	at      time.Time
	service time.Duration // what the model took; 0: not known
}

// hear notes an answer, unless the call has landed. c.mu is held.
func (c *call) hear(from *route.Target, service time.Duration, now time.Time) {
	if _, _, landed := c.flight.Result(); landed {
		return
	}
	for _, q := range c.asked[:c.tries] {
		if q.target == from {
			*c.heard = heard{from, q.at, now, service}
		}
	}
}

// last is the answer that the call landed with, or else the last question that went
// out, without one.
func (c *call) last() heard {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard.target == nil && c.tries > 0 {
		q := c.asked[c.tries-1]
		return heard{target: q.target, sent: q.at}
	}
	return *c.heard
}

// watch has the times noted that t wants, which may be nil.
func (w *work) watch(t *timing.Timing) {
	if t == nil {
		return
	}
	w.timing, w.watched = t, true
	t.Selected = time.Now()
}

// time says where the time went of the part that decided the answer, which is made now.
func (w *work) time(now time.Time) {
	t := w.timing
	t.Combined = now
	if w.app.stages != nil {
		t.Heard, t.Model = now, w.verdict.Model
		return
	}
	i := w.deciding()
	if i < 0 {
		return
	}
	p := &w.parts[i]
	t.Model, t.Selected, t.Looked, t.Cache = p.version.ModelID, p.asked, p.asked.Add(p.looked), w.cacheNote(p)
	if p.flight == nil {
		return
	}
	t.Heard = now
	if w.answers[i].Come() && p.took > 0 {
		t.Heard = p.asked.Add(p.took)
	}
	if p.call == nil {
		return
	}
	switch h := p.call.last(); {
	case h.target == nil: // it was held to the end
	case h.at.IsZero():
		t.Sent, t.Replica = h.sent, h.target.Replica()
	default:
		t.Sent, t.Heard, t.Service, t.Replica = h.sent, h.at, h.service, h.target.Replica()
	}
}

// deciding is the part that the answer is made of; of several the one that came last,
// and without any the first that was asked. It is -1 where nobody was.
func (w *work) deciding() int {
	decided, latest := -1, time.Time{}
	for i := range w.parts[:w.opened] {
		p := &w.parts[i]
		if p.shed || w.plan.Asks[i].Shadow || p.asked.IsZero() {
			continue
		}
		var came time.Time
		if w.answers[i].Output != nil {
			came = p.asked.Add(p.took)
			if w.plan.Asks[i].ID == w.verdict.Model {
				return i
			}
		}
		if decided < 0 || came.After(latest) {
			decided, latest = i, came
		}
	}
	return decided
}

// cacheNote says what the cache had to do with a part.
func (w *work) cacheNote(p *part) string {
	switch {
	case w.q.NoCache || w.app.Cache.Off:
		return "off"
	case p.flight == nil:
		return "hit"
	case p.call == nil:
		return "joined"
	}
	return "missed"
}
