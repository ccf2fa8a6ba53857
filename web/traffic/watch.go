package traffic

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
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
	leadership *leadership // nil: it does not lead
	replicas   map[replicaKey]*measures
	conditions *conditions

	leads bool
}

// within bounds a look at one target.
const within = 2 * time.Second

// look reads the target's metrics, which are of about so many apps.
func (t Target) look(ctx context.Context, apps int) (look, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	l := t.newLook(time.Now(), apps)
	if err := t.Source.Read(ctx, l.readers(t.Role)); err != nil {
		return look{}, err
	}
	if !l.leads {
		l.leadership = nil
	}
	return *l, nil
}

// newLook has what a process of the target's role may say.
func (t Target) newLook(at time.Time, apps int) *look {
	l := &look{at: at}
	if t.Role == Gateway || t.Role == Local {
		l.tallies = make(map[string]*tally, apps)
		l.conditions = &conditions{at: at, streams: map[string]*api.StreamNow{}}
	}
	if t.Role == Scheduler || t.Role == Local {
		l.leadership = &leadership{leader: t.Name, at: at, pools: map[serving.ModelID]*pool{}}
	}
	if t.Role != Scheduler {
		l.replicas = map[replicaKey]*measures{}
	}
	return l
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
		switch before := w.tallies[name]; {
		case !continues:
		case t.same(before): // most apps are at rest
			a.rest(from, second)
		default:
			a.take(t.since(before), from, second)
		}
	}
	w.tallies = l.tallies
	c.heard = l.at
}

// takeLeadership notes what the leader says.
func (c *Collector) takeLeadership(w *watch, l look) {
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
