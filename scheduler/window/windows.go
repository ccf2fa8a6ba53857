package window

import (
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// stale is how old the newest known second may be, counted from its end. That is
	// not less than the wait for a silent gateway, so that one which is killed
	// makes nothing unknown while others live.
	stale = 5 * time.Second

	history = 120 // seconds that are read at the most; less than span
	overlap = 3   // that are read again, for sidecars and new gateways that report late
	reread  = 30  // in which a hole is read again
)

// Windows is the demand of all model versions.
type Windows struct {
	gateways map[string]*gateway
	series   map[serving.ModelID]*series

	began   int64       // the first second that was read
	newest  int64       // reported by any gateway
	jumped  time.Time   // when newest last went up by several seconds at once
	anchor  int64       // the newest known second; 0: none yet
	known   [span]int64 // the seconds up to anchor that are known
	unknown int64       // the newest second below anchor that is not known
	left    int64       // the newest one that left the span without being known
}

// New knows nothing.
func New() *Windows {
	return &Windows{gateways: map[string]*gateway{}, series: map[serving.ModelID]*series{}}
}

// From is the start of what Take needs next: what is new, and what may have come late.
func (w *Windows) From(now time.Time) time.Time {
	second := now.Unix()
	oldest := second - history
	if w.anchor == 0 {
		return time.Unix(oldest, 0).UTC()
	}
	from := min(w.anchor+1, second-overlap)
	for s := max(w.began, second-reread); s < from; s++ {
		if !w.isKnown(s) {
			from = s
		}
	}
	return time.Unix(max(from, oldest), 0).UTC()
}

// Take takes in all reports of the seconds from what From said to now. Those that
// it knows already change nothing.
func (w *Windows) Take(reports []serving.DemandReport, from, now time.Time) {
	if w.began == 0 {
		w.began = from.Unix()
	}
	before := w.newest
	for i := range reports {
		r := &reports[i]
		if s := r.Second.Unix(); s > now.Unix()-span && s <= now.Unix() {
			w.add(r, s, now)
		}
	}
	if w.newest >= before+jump {
		w.jumped = now
	}
	w.judge(now)
	w.settle()
	w.forget()
}

func (w *Windows) add(r *serving.DemandReport, second int64, now time.Time) {
	if r.Source.Role != "gateway" {
		for i := range r.Demands {
			w.of(r.Demands[i].ModelID).addSidecar(r.Source.Name, second, &r.Demands[i])
		}
		return
	}
	g := w.gateways[r.Source.Name]
	if g == nil {
		g = &gateway{}
		w.gateways[r.Source.Name] = g
	}
	if !g.add(second, r.Last, now) {
		return
	}
	w.newest = max(w.newest, second)
	for i := range r.Demands {
		w.of(r.Demands[i].ModelID).addGateway(second, &r.Demands[i])
	}
	for i := range r.Backlogs {
		w.of(r.Backlogs[i].ModelID).addBacklog(second, &r.Backlogs[i])
	}
}

func (w *Windows) of(id serving.ModelID) *series {
	s := w.series[id]
	if s == nil {
		s = &series{profiles: map[string]profile{}}
		w.series[id] = s
	}
	return s
}

// settle finds out which seconds are known.
func (w *Windows) settle() {
	anchor := w.newest
	for anchor > w.newest-span && !w.complete(anchor) {
		anchor--
	}
	if !w.complete(anchor) {
		return // nothing is; what was known before stays
	}
	for s := w.anchor - span + 1; w.anchor > 0 && s <= min(anchor-span, w.anchor); s++ {
		if !w.isKnown(s) {
			w.left = s
		}
	}
	if w.anchor > 0 && anchor-span > w.anchor {
		w.left = anchor - span
	}
	w.anchor, w.unknown = anchor, w.left
	for s := anchor - span + 1; s <= anchor; s++ {
		w.known[s%span] = 0
		switch {
		case w.complete(s):
			w.known[s%span] = s
		case s >= w.began:
			w.unknown = s
		}
	}
}

// complete says whether all gateways that were expected to have reported the
// second, of which there must be one.
func (w *Windows) complete(second int64) bool {
	reported := false
	for _, g := range w.gateways {
		switch {
		case g.reported(second):
			reported = true
		case g.expected(second):
			return false
		}
	}
	return reported
}

func (w *Windows) isKnown(second int64) bool { return w.known[second%span] == second }

// forget drops what has nothing within the span. While nothing reports, nothing is
// dropped: a version is not quiet because it has no reports.
func (w *Windows) forget() {
	oldest := w.newest - span
	maps.DeleteFunc(w.gateways, func(_ string, g *gateway) bool { return g.newest < oldest })
	maps.DeleteFunc(w.series, func(_ serving.ModelID, s *series) bool { return s.newest < oldest })
}

// Versions are those with a report in the last two minutes.
func (w *Windows) Versions() iter.Seq[serving.ModelID] { return maps.Keys(w.series) }

// Answers says whether a sidecar has said lately that a container answered for the
// version.
func (w *Windows) Answers(id serving.ModelID) bool {
	s := w.series[id]
	return s != nil && s.answers
}

// Has says whether the version is one of Versions.
func (w *Windows) Has(id serving.ModelID) bool { return w.series[id] != nil }

// Unknown says why the demand is not known at now, or nothing where it is.
func (w *Windows) Unknown(now time.Time) string {
	if w.anchor == 0 {
		return "no gateway has reported demand yet"
	}
	if age := now.Sub(time.Unix(w.anchor+1, 0)); age > stale {
		return fmt.Sprintf("the last second that all gateways reported is %d s ago", int(age.Seconds()))
	}
	length := int64(Panic / time.Second)
	known := 0
	for s := w.anchor - length + 1; s <= w.anchor; s++ {
		if w.isKnown(s) {
			known++
		}
	}
	if 2*known < int(length) {
		return fmt.Sprintf("of the last %d s only %d are known", length, known)
	}
	return ""
}

// Demand is what is asked of a version at now.
func (w *Windows) Demand(id serving.ModelID, now time.Time) Demand {
	d := Demand{Unknown: w.Unknown(now)}
	if w.anchor == 0 {
		return d
	}
	quiet := max(w.unknown, w.began-1)
	s := w.series[id]
	if s != nil {
		quiet = max(quiet, s.active)
		d.Profile = s.line(w.anchor - int64(Stable/time.Second))
		d.Backlog = s.backlog(w.anchor, w.isKnown)
	}
	d.Quiet = time.Duration(max(0, w.anchor-quiet)) * time.Second
	w.sum(s, &d)
	return d
}

// sum fills in the windows, newest second first.
func (w *Windows) sum(s *series, d *Demand) {
	var all, slide sum
	for i := range int64(Stable / time.Second) {
		second := w.anchor - i
		if w.isKnown(second) {
			c := s.at(second)
			all, slide = all.add(c, 1), slide.add(c, 1)
		}
		if gone := second + int64(Panic/time.Second); gone <= w.anchor && w.isKnown(gone) {
			slide = slide.add(s.at(gone), -1)
		}
		switch time.Duration(i+1) * time.Second {
		case Burst:
			d.Burst = all.mean()
		case Panic:
			d.Panic = all.mean()
		}
		if m := slide.mean(); i+1 >= int64(Panic/time.Second) && 2*m.Seconds >= int(Panic/time.Second) {
			d.Peak = Mean{Seconds: m.Seconds, Rate: max(d.Peak.Rate, m.Rate), InFlight: max(d.Peak.InFlight, m.InFlight)}
		}
	}
	d.Stable = all.mean()
}
