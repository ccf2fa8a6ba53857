package predict

import (
	"topsail/gateway/usage"
	"topsail/serving"
)

// backlogsOf has one of each version, those that were there before among them.
func (p *Predictor) backlogsOf(cat *serving.Catalog) map[serving.ModelID]*backlog {
	all := map[serving.ModelID]*backlog{}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			b := (*p.backlogs.Load())[v.ModelID]
			if b == nil {
				b = &backlog{id: v.ModelID, table: p.table, room: &p.room, wakes: p.wakes, usage: &usage.Counter{}}
			}
			b.guest.hosting.Store(hostingOf(cat, v))
			if m.Serving == v.Version {
				b.guest.proven.Store(true)
			}
			all[v.ModelID] = b
		}
	}
	return all
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
