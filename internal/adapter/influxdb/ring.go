package influxdb

import (
	"slices"
	"sync"

	"github.com/influxdata/influxdb-client-go/v2/api/write"

	"github.com/topsail-serving/topsail/serving"
)

// What waits to be written is bounded, in points.
const (
	maxDemand  = 50_000 // of 200 versions, four minutes and some 10 MB
	maxMetrics = 10_000 // in points as large as those of demand: some 8 MB, of one busy app ten minutes
)

// demandFields is how many fields a point of demand has.
const demandFields = 12

// entry is a report, a decision, or the metrics of an interval.
type entry struct {
	report   *serving.DemandReport
	decision *serving.Decision
	metrics  []*write.Point
}

// points is how many it makes, or as how many it is large.
func (e entry) points() int {
	switch {
	case e.report != nil:
		return 1 + len(e.report.Demands)
	case e.decision != nil:
		return 1
	}
	fields := 0
	for _, p := range e.metrics {
		fields += len(p.FieldList())
	}
	return 1 + fields/demandFields
}

// ring is what waits to be written, the oldest first. When there is no room the
// oldest go.
type ring struct {
	limit int           // in points
	came  chan struct{} // has a value when there is something new

	mu      sync.Mutex // guards the following
	entries []entry
	points  int
	dropped uint64
	atTake  uint64 // dropped, when something was taken last
}

func newRing(limit int) *ring { return &ring{limit: limit, came: make(chan struct{}, 1)} }

func (r *ring) put(e entry) {
	r.mu.Lock()
	r.entries = append(r.entries, e)
	r.points += e.points()
	r.trim()
	r.mu.Unlock()
	select {
	case r.came <- struct{}{}:
	default:
	}
}

// take takes out the oldest entries, of at most limit points unless the first alone
// has more.
func (r *ring) take(limit int) []entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, points := 0, 0
	for n < len(r.entries) && (n == 0 || points+r.entries[n].points() <= limit) {
		points += r.entries[n].points()
		n++
	}
	taken := slices.Clone(r.entries[:n])
	clear(r.entries[:n])
	r.entries, r.points, r.atTake = r.entries[n:], r.points-points, r.dropped
	return taken
}

// giveBack puts back what was taken last, unless newer entries had to go since.
func (r *ring) giveBack(taken []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped != r.atTake {
		r.dropped += uint64(len(taken))
		return
	}
	for _, e := range taken {
		r.points += e.points()
	}
	r.entries = append(taken, r.entries...)
	r.trim()
}

func (r *ring) trim() {
	for r.points > r.limit && len(r.entries) > 1 {
		r.points -= r.entries[0].points()
		r.entries[0] = entry{}
		r.entries = r.entries[1:]
		r.dropped++
	}
}

func (r *ring) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.entries)
}
