package predict

import (
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/serving"
)

// tally is the count of a version, one for all apps. p.mu is held.
func (p *Predictor) tally(id serving.ModelID) *demand.Tally {
	t, known := p.tallies[id]
	if !known {
		t = p.Demand.Open(id, nil)
		p.tallies[id] = t
	}
	return t
}

// closeTallies drops those of versions that are no longer in the catalog. p.mu is held.
func (p *Predictor) closeTallies(cat *serving.Catalog) {
	for id, t := range p.tallies {
		if m := cat.Models[id.Model]; m == nil || m.Versions[id.Version] == nil {
			t.Close()
			delete(p.tallies, id)
		}
	}
}
