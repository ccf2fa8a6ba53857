package predict

import (
	"topsail/gateway/usage"
	"topsail/serving"
)

// backlogsOf has one of each definition of a version, those that were there before among
// them. What came of a version is counted on when it is another one.
func (p *Predictor) coldQueuesOf(cat *serving.Catalog) map[serving.Definition]*coldQueue {
	all, before := map[serving.Definition]*coldQueue{}, *p.coldQueues.Load()
	older := make(map[serving.ModelID]*coldQueue, len(before))
	for _, b := range before {
		older[b.ModelID] = b
	}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			for _, d := range cat.Definitions(v) {
				b := before[d]
				if b == nil {
					b = p.newColdQueue(d, older[v.ModelID])
				}
				b.hostedModel.hosting.Store(hostingOf(cat, v, d))
				b.hostedModel.inherit(older[v.ModelID])
				older[v.ModelID] = b
				if m.Serving == v.Version {
					b.hostedModel.proven.Store(true)
				}
				all[d] = b
			}
		}
	}
	return all
}

// newBacklog makes one; older is of the same version, if there is one.
func (p *Predictor) newColdQueue(d serving.Definition, older *coldQueue) *coldQueue {
	b := &coldQueue{Definition: d, table: p.table, room: &p.room, wakes: p.wakes, usage: &usage.Counter{}, stages: &usage.Stages{}}
	if older != nil {
		b.usage, b.stages = older.usage, older.stages
	}
	return b
}

// retire ends what is held: the version is another one by now, or gone, and no replica
// will come.
func (b *coldQueue) retire() {
	b.mu.Lock()
	b.retired = true
	b.mu.Unlock()
	b.giveUp(superseded)
}

// Held is how many questions wait for a replica.
func (p *Predictor) Queued() int { return int(p.room.questions.Load()) }

// replicasChanged lets held questions go to replicas that have come.
func (p *Predictor) replicasChanged() {
	for _, b := range *p.coldQueues.Load() {
		if b.cold.Load() {
			b.replicasChanged()
		}
	}
}
