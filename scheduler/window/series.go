package window

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// span is how many seconds are kept, a power of two.
const span = 128

// series is one version's demand by the second.
type series struct {
	cells    [span]cell
	newest   int64 // second with a report about it
	active   int64 // newest second with a query; 0: none
	profiles map[string]profile
	backlogs map[string]*waits // by stream; nil: of none
	answers  bool              // a sidecar has said that a container answered
}

// cell sums up what all gateways saw in one second. Concurrency is in queries.
type cell struct {
	second                      int64
	arrived, diverted, inFlight float64
}

// wanted is the concurrency had the queries that were diverted been in flight for as long as the others, by Little's law.
func (c cell) wanted() float64 {
	if served := c.arrived - c.diverted; served > 0 {
		return c.inFlight * c.arrived / served
	}
	return c.inFlight
}

type profile struct {
	second int64
	line   serving.LatencyLine
}

// at is the demand of a second, which is none unless it was reported. A nil
// series is that of a version without reports.
func (s *series) at(second int64) cell {
	if s != nil && s.cells[second%span].second == second {
		return s.cells[second%span]
	}
	return cell{}
}

func (s *series) addGateway(second int64, d *serving.Demand) {
	c := &s.cells[second%span]
	if c.second != second {
		*c = cell{second: second}
	}
	c.arrived += float64(d.Arrivals)
	c.diverted += float64(d.Diverted)
	c.inFlight += d.Concurrency.Seconds()
	s.newest = max(s.newest, second)
	if d.Arrivals > 0 || d.Concurrency > 0 {
		s.active = max(s.active, second)
	}
}

func (s *series) addSidecar(source string, second int64, d *serving.Demand) {
	s.newest = max(s.newest, second)
	s.answers = s.answers || d.Batches > 0
	if d.Profile != (serving.LatencyLine{}) && second >= s.profiles[source].second {
		s.profiles[source] = profile{second, d.Profile}
	}
}

// line is the mean of the profiles that are not older than since, and forgets the
// others. The capacity of the mean is at most the mean of the capacities.
func (s *series) line(since int64) serving.LatencyLine {
	var sum serving.LatencyLine
	for source, p := range s.profiles {
		if p.second < since {
			delete(s.profiles, source)
			continue
		}
		sum.Base += p.line.Base
		sum.PerInput += p.line.PerInput
	}
	n := time.Duration(max(1, len(s.profiles)))
	return serving.LatencyLine{Base: sum.Base / n, PerInput: sum.PerInput / n}
}
