package predict

import (
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Backlog says what waits in a stream for apps from now on, and in what time it is to be worked off: as
// demand of the versions that take their queries. A policy may ask some of them less than others; what
// was answered tells.
func (p *Predictor) Backlog(stream string, catchUp time.Duration, waiting []serving.AppBacklog) {
	var all []serving.Backlog
	for _, w := range waiting {
		a, err := p.app(w.App)
		if err != nil {
			continue
		}
		for _, id := range a.asked() {
			at := slices.IndexFunc(all, func(b serving.Backlog) bool { return b.ModelID == id })
			if at < 0 {
				at = len(all)
				all = append(all, serving.Backlog{ModelID: id, Stream: stream, CatchUp: catchUp})
			}
			all[at].Records += w.Records
			all[at].Answered += w.Answered
		}
	}
	p.Demand.Backlog(stream, all)
}

// asked are the versions that queries of the app may ask, as their demand is counted.
func (a *app) asked() (ids []serving.ModelID) {
	add := func(v *version) {
		if v != nil && v.demand != nil && !slices.Contains(ids, v.demand.ID()) {
			ids = append(ids, v.demand.ID())
		}
	}
	for _, l := range a.both {
		v, _ := a.peekServing(l)
		add(v)
	}
	for _, m := range a.members {
		if m.pinned != nil {
			add(m.pinned.onHost())
			continue
		}
		v, _ := a.peekServing(m.linked)
		add(v)
	}
	return ids
}
