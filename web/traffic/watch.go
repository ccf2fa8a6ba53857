package traffic

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// watch is one target with what was last read of it.
type watch struct {
	Target
	busy    bool // it is being looked at
	gone    bool // it is no longer a target, and what is read of it counts no more
	failing bool
	read    int64 // the second of the last look; 0: none yet

	tallies    map[string]*tally
	replicas   map[replicaKey]*measures
	conditions *conditions
}

// look is what was read of a target at one time.
type look struct {
	at         time.Time
	tallies    map[string]*tally
	leadership *leadership
	replicas   map[replicaKey]*measures
	conditions *conditions
}

// within bounds a look at one target.
const within = 2 * time.Second

// look reads the target's metrics.
func (t Target) look(ctx context.Context) (look, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	l := look{at: time.Now()}
	families, err := t.Source.Scrape(ctx)
	if err != nil {
		return look{}, err
	}
	t.sort(&l, families)
	return l, nil
}

func (t Target) sort(l *look, families []*obs.Family) {
	if t.Role == Gateway || t.Role == Local {
		l.tallies = readTallies(families)
		l.conditions = readConditions(l.at, families)
	}
	if t.Role == Scheduler || t.Role == Local {
		l.leadership = readLeadership(t.Name, l.at, families)
	}
	if t.Role == Sidecar || t.Role == Local {
		l.replicas = readMeasures(l.at, families)
	}
}

// longestGap is the longest time between two looks at a gateway that what came
// meanwhile is spread over. After a longer one counting begins anew.
const longestGap = int64(fine / time.Second)

// since is the last second before a look that is accounted for; false for a look that
// can only be the beginning.
func (w *watch) since(at int64) (int64, bool) {
	if w.read == 0 || at-w.read > longestGap {
		return 0, false
	}
	return min(w.read, at-1), true // the clock may have been set back
}

// steady is how long gauges are taken to have been as they are found.
const steady = 5

// takeTallies adds what a gateway counted since the last look.
func (c *Collector) takeTallies(w *watch, l look) {
	second := l.at.Unix()
	from, continues := w.since(second)
	for name, t := range l.tallies {
		a := c.app(name)
		if a == nil {
			continue
		}
		a.seen = l.at
		if t.objective > 0 {
			a.objective = t.objective
		}
		if continues {
			a.take(t.since(w.tallies[name]), from, second)
		}
	}
	w.tallies = l.tallies
	c.heard = l.at
}

// takeReign notes what the leader says.
func (c *Collector) takeReign(w *watch, l look) {
	second := l.at.Unix()
	from := second - 1
	if before, continues := w.since(second); continues && second-before <= steady {
		from = before
	}
	for id, p := range l.leadership.pools {
		if v := c.version(id); v != nil {
			v.seen = l.at
			v.take(p, from, second)
		}
	}
	c.leadership = l.leadership
	c.told = l.at
}

// takeMeasures replaces what was known of a sidecar's replicas.
func (c *Collector) takeMeasures(w *watch, l look) {
	for key, m := range l.replicas {
		m.after(c.replicas[key])
		c.perform(key, &m.reading)
	}
	c.dropMeasures(w)
	for key, m := range l.replicas {
		if len(c.replicas) < maxReplicas {
			c.replicas[key] = m
		}
	}
	w.replicas = l.replicas
}

func (c *Collector) dropMeasures(w *watch) {
	for key, m := range w.replicas {
		if c.replicas[key] == m {
			delete(c.replicas, key)
		}
	}
	w.replicas = nil
}

// app finds or makes an app; nil where there are too many.
func (c *Collector) app(name string) *app {
	a := c.apps[name]
	if a == nil && len(c.apps) < maxApps {
		a = newApp()
		c.apps[name] = a
	}
	return a
}

// version finds or makes a version; nil where there are too many.
func (c *Collector) version(id serving.ModelID) *version {
	v := c.versions[id]
	if v == nil && len(c.versions) < maxVersions {
		v = newVersion()
		c.versions[id] = v
	}
	return v
}
