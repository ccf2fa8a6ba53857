package inprocess

import (
	"context"
	"sync"

	"github.com/topsail-serving/topsail/serving"
)

// keptDecisions bounds what Decisions keeps.
const keptDecisions = 1000

// Decisions keeps the newest decisions of the scheduler of this process. It is the twin
// of the stream in Redis.
type Decisions struct {
	mu   sync.Mutex // guards the following
	ring []serving.Decision
	next int // where the next one goes, once the ring is full
}

// NewDecisions has no decisions.
func NewDecisions() *Decisions { return &Decisions{} }

// AddDecision keeps a decision; the oldest go. There is one scheduler, so it does not
// look at the fence.
func (d *Decisions) AddDecision(ctx context.Context, decision serving.Decision) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ring) < keptDecisions {
		d.ring = append(d.ring, decision)
		return nil
	}
	d.ring[d.next] = decision
	d.next = (d.next + 1) % keptDecisions
	return nil
}

// Decisions returns up to n decisions about a model version, the newest first. An
// empty version stands for all of the model, an empty model for all models.
func (d *Decisions) Decisions(ctx context.Context, n int, about serving.ModelID) ([]serving.Decision, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []serving.Decision
	for i := len(d.ring) - 1; i >= 0 && len(found) < n; i-- {
		if one := d.ring[(d.next+i)%len(d.ring)]; one.Matches(about) {
			found = append(found, one)
		}
	}
	return found, nil
}
