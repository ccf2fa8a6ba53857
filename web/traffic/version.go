package traffic

import (
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

const (
	leaderName   = "topsail_scheduler_leader"
	unknownName  = "topsail_scheduler_demand_unknown_seconds"
	desiredName  = "topsail_scheduler_desired_replicas"
	readyName    = "topsail_scheduler_ready_replicas"
	demandName   = "topsail_scheduler_demand"
	capacityName = "topsail_scheduler_capacity"
	blockedName  = "topsail_scheduler_blocked_seconds"
	problemName  = "topsail_scheduler_job_problem"
	alarmName    = "topsail_scheduler_alarm"
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

// reign is what a scheduler says while it leads.
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

// readReign finds what a leader says in the metrics of a scheduler; nil where it does not lead.
func readLeadership(name string, at time.Time, families []*obs.Family) *leadership {
	r := &leadership{leader: name, at: at, pools: map[serving.ModelID]*pool{}}
	leads := false
	for _, f := range families {
		for _, s := range f.GetMetric() {
			v := number(s.GetGauge().GetValue())
			switch f.GetName() {
			case leaderName:
				leads = leads || v == 1
			case unknownName:
				r.unknown = v
			default:
				r.read(f.GetName(), s, v)
			}
		}
	}
	if !leads {
		return nil
	}
	return r
}

// read reads a gauge of one version; others change nothing.
func (r *leadership) read(name string, s *obs.Sample, v float64) {
	var take func(*pool)
	switch name {
	case desiredName:
		take = func(p *pool) { p.Desired = count(s) }
	case readyName:
		take = func(p *pool) { p.Ready = count(s) }
	case demandName:
		take = func(p *pool) { p.Demand, p.demand = v, &v }
	case capacityName:
		take = func(p *pool) { p.Capacity, p.capacity = v, &v }
	case blockedName:
		take = func(p *pool) { p.Blocked = v }
	case problemName:
		take = func(p *pool) { p.Problem = v > 0 }
	case alarmName:
		take = func(p *pool) { p.Alarm = v > 0 }
	default:
		return
	}
	id := serving.ModelID{Model: label(s, "model"), Version: label(s, "version")}
	p := r.pools[id]
	if p == nil {
		p = &pool{Pool: api.Pool{Model: id.Model, Version: id.Version}}
		r.pools[id] = p
	}
	take(p)
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
