package predict

import (
	"topsail/gateway/usage"
	"topsail/serving"
)

// backlogsOf has one of each definition of a version, those that were there before among
// them. What came of a version is counted on when it is another one.
func (p *Predictor) backlogsOf(cat *serving.Catalog) map[serving.Definition]*backlog {
	all, before := map[serving.Definition]*backlog{}, *p.backlogs.Load()
	older := make(map[serving.ModelID]*backlog, len(before))
	for _, b := range before {
		older[b.ModelID] = b
	}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			for _, d := range cat.Definitions(v) {
				b := before[d]
				if b == nil {
					b = p.newBacklog(d, older[v.ModelID])
				}
				b.guest.hosting.Store(hostingOf(cat, v, d))
				b.guest.inherit(older[v.ModelID])
				older[v.ModelID] = b
				if m.Serving == v.Version {
					b.guest.proven.Store(true)
				}
				all[d] = b
			}
		}
	}
	return all
}

// newBacklog makes one; older is of the same version, if there is one.
func (p *Predictor) newBacklog(d serving.Definition, older *backlog) *backlog {
	b := &backlog{Definition: d, table: p.table, room: &p.room, wakes: p.wakes, usage: &usage.Counter{}, stages: &usage.Stages{}}
	if older != nil {
		b.usage, b.stages = older.usage, older.stages
	}
	return b
}

// retire ends what is held: the version is another one by now, or gone, and no replica
// will come.
func (b *backlog) retire() {
	b.mu.Lock()
	b.retired = true
	b.mu.Unlock()
	b.giveUp(superseded)
}

// Held is how many questions wait for a replica.
func (p *Predictor) Held() int { return int(p.room.questions.Load()) }

// replicasChanged lets held questions go to replicas that have come.
func (p *Predictor) replicasChanged() {
	for _, b := range *p.backlogs.Load() {
		if b.cold.Load() {
			b.replicasChanged()
		}
	}
}
