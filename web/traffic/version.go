package traffic

import (
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// The numbers of a version in a step.
const (
	demand = iota // the highest: that is what capacity has to bear
	capacity
	desired
	ready
	versionColumns
)

// version is what the leading scheduler says of a model version, over time.
type version struct {
	seen   time.Time
	series series
}

func newVersion() *version { return &version{series: newSeries(versionColumns)} }

// leadership is what a scheduler says while it leads.
type leadership struct {
	leader  string // its name
	at      time.Time
	unknown float64 // for how many seconds the demand has been unknown
	pools   map[serving.ModelID]*pool
}

// pool is a pool with what is known of it.
type pool struct {
	api.Pool
	demand, capacity *float64 // nil: unknown
}

// pool finds or makes the pool of a version.
func (r *leadership) pool(id serving.ModelID) *pool {
	p := r.pools[id]
	if p == nil {
		p = &pool{Pool: api.Pool{Model: id.Model, Version: id.Version}}
		r.pools[id] = p
	}
	return p
}

func (p *pool) readDemand(s *obs.Series) {
	p.Demand = number(s.Value)
	p.demand = &p.Demand
}

func (p *pool) readCapacity(s *obs.Series) {
	p.Capacity = number(s.Value)
	p.capacity = &p.Capacity
}

// take notes how the pool was in the seconds after from, up to to.
func (v *version) take(p *pool, from, to int64) {
	for second := from + 1; second <= to; second++ {
		for i := range v.series {
			r := &v.series[i]
			r.set(desired, second, float64(p.Desired))
			r.set(ready, second, float64(p.Ready))
			if p.demand != nil {
				r.raise(demand, second, *p.demand)
			}
			if p.capacity != nil {
				r.set(capacity, second, *p.capacity)
			}
		}
	}
}

// over is the version in a window up to a second. Who knows the decisions adds them.
func (v *version) over(id serving.ModelID, window time.Duration, until int64) api.VersionSeries {
	w := v.series.view(window, until)
	return api.VersionSeries{
		Model: id.Model, Version: id.Version, Step: w.step(), Times: w.times(),
		Demand: w.points(demand, most), Capacity: w.points(capacity, last), Desired: w.points(desired, last), Ready: w.points(ready, last),
		Decisions: []serving.Decision{},
	}
}
