package inprocess

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// demandReports bounds what Demand keeps: for the two sources of one process, more
// than ten minutes.
const demandReports = 1500

// Demand keeps the newest demand reports of this process. It is the twin of
// InfluxDB.
type Demand struct {
	mu   sync.Mutex // guards the following
	ring []serving.DemandReport
	next int // where the next one goes, once the ring is full
}

// NewDemand has no demand.
func NewDemand() *Demand { return &Demand{} }

// WriteDemand keeps a report, and forgets the one that was kept for the longest when
// there are too many. A report replaces an earlier one of its source and second.
func (d *Demand) WriteDemand(r serving.DemandReport) {
	d.mu.Lock()
	defer d.mu.Unlock()
	same := func(old serving.DemandReport) bool { return old.Source == r.Source && old.Second.Equal(r.Second) }
	switch at := slices.IndexFunc(d.ring, same); {
	case at >= 0:
		d.ring[at] = r
	case len(d.ring) < demandReports:
		d.ring = append(d.ring, r)
	default:
		d.ring[d.next] = r
		d.next = (d.next + 1) % demandReports
	}
}

// ReadDemand is the reports of the seconds from from, and before to, by second and
// source. They are the caller's own.
func (d *Demand) ReadDemand(ctx context.Context, from, to time.Time) ([]serving.DemandReport, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []serving.DemandReport
	for _, r := range d.ring {
		if !r.Second.Before(from) && r.Second.Before(to) {
			r.Demands, r.Backlogs = slices.Clone(r.Demands), slices.Clone(r.Backlogs)
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b serving.DemandReport) int {
		return cmp.Or(a.Second.Compare(b.Second), cmp.Compare(a.Source.Role, b.Source.Role), cmp.Compare(a.Source.Name, b.Source.Name))
	})
	return found, nil
}
