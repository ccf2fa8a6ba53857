package traffic

import (
	"cmp"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// settled is the last second that gateways have been read of: the one that goes on now
// may lack some.
func settled(now time.Time) int64 { return now.Unix() - 1 }

// Now implements api.Traffic.
func (c *Collector) Now() api.TrafficNow {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	t := api.TrafficNow{At: now.UTC(), Window: minute, Apps: []api.AppTraffic{}}
	for name, a := range c.apps {
		if one, ok := a.now(name, settled(now)); ok {
			t.Apps = append(t.Apps, one)
		}
	}
	slices.SortFunc(t.Apps, func(a, b api.AppTraffic) int {
		return cmp.Or(cmp.Compare(worth(a), worth(b)), cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.App, b.App))
	})
	return t
}

// worth orders apps: those without traffic are as good as the best.
func worth(a api.AppTraffic) float64 {
	if a.Attainment == nil {
		return 1
	}
	return *a.Attainment
}

// App implements api.Traffic. Of an app that no gateway knows, everything is unknown.
func (c *Collector) App(name string, window time.Duration) api.AppSeries {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.apps[name]
	if a == nil {
		a = newApp()
	}
	return a.over(name, window, settled(time.Now()))
}

// Chosen implements api.Traffic.
func (c *Collector) Chosen(name string) []api.ModelTraffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.apps[name]
	if a == nil {
		return nil
	}
	return a.chosen(settled(time.Now()))
}

// Version implements api.Traffic. It knows of no decisions.
func (c *Collector) Version(id serving.ModelID, window time.Duration) api.VersionSeries {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.versions[id]
	if v == nil {
		v = newVersion()
	}
	return v.over(id, window, settled(time.Now()))
}

// Measured implements api.Traffic.
func (c *Collector) Measured(r *api.Replica) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.replicas[replicaKey{r.Model, r.Version, r.Name}]; m != nil && time.Since(m.at) <= current {
		m.fill(r)
	}
}

// Replicas are those of a version that were read lately, whose state is ready or failed.
func (c *Collector) Replicas(id serving.ModelID) (list []api.Replica) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, m := range c.replicas {
		if key.model == id.Model && key.version == id.Version && time.Since(m.at) <= current {
			state := map[bool]string{true: "ready", false: "failed"}[m.ready]
			list = append(list, api.Replica{ID: key.replica, Name: key.replica, Model: key.model, Version: key.version, State: state})
		}
	}
	return list
}

// Pools are the pools as the leading scheduler has them, by model and version; none
// while no leader can be read. Pins and decisions are for others to add.
func (c *Collector) Pools() []api.Pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []api.Pool
	if r := c.leading(); r != nil {
		for _, p := range r.pools {
			all = append(all, p.Pool)
		}
	}
	slices.SortFunc(all, func(a, b api.Pool) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Version, b.Version))
	})
	return all
}

// Leader is the name of the target that leads, empty while none can be read, and for
// how many seconds the demand has been unknown to it.
func (c *Collector) Leader() (name string, demandUnknown float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.leading(); r != nil {
		return r.leader, r.unknown
	}
	return "", 0
}

// leading is what a leader said not long ago, or nil.
func (c *Collector) leading() *leadership {
	if c.leadership == nil || time.Since(c.leadership.at) > current {
		return nil
	}
	return c.leadership
}
