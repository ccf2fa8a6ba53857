package traffic

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	atOnce  = 16               // targets of a kind that are looked at at once
	kept    = 10 * time.Minute // for which the past of what is gone is kept
	current = 30 * time.Second // after which measures and gauges that no process renews are unknown

	maxApps     = 10_000
	maxVersions = 10_000
	maxReplicas = 20_000
)

// Config is what a Collector needs.
type Config struct {
	// Targets are the processes there are now. It is asked every second, and does not wait.
	Targets func() []Target
	Keeper  Keeper       // keeps the past; nil: the past ends with the process
	Log     *slog.Logger // nil: nothing is logged
}

// Collector reads the metrics of processes while Run runs, and keeps what they say for
// a week, by app, version and replica: some 300 KB for each app that is asked all the
// time. Its methods may be called concurrently.
type Collector struct {
	cfg Config
	// Sidecars are many and may be slow; gateways do not wait for them.
	few, many chan struct{} // hold a token for each look that is under way

	mu           sync.Mutex // guards what follows
	watches      map[Role]map[string]*watch
	apps         map[string]*app
	versions     map[serving.ModelID]*version
	replicas     map[replicaKey]*measures
	readings     map[replicaKey]*reading // also of replicas whose sidecar cannot be read now
	performances map[serving.Definition]*performance
	leadership   *leadership // the last; nil: none yet
	heard        time.Time   // when a gateway was last read
	told         time.Time   // when a leader was
}

// New makes a Collector that knows nothing yet.
func New(cfg Config) *Collector {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Collector{
		cfg: cfg, few: make(chan struct{}, atOnce), many: make(chan struct{}, atOnce),
		watches: map[Role]map[string]*watch{}, apps: map[string]*app{}, versions: map[serving.ModelID]*version{},
		replicas: map[replicaKey]*measures{}, readings: map[replicaKey]*reading{}, performances: map[serving.Definition]*performance{},
	}
}

// Run takes over the past, looks at targets until ctx ends, saves what is known from time
// to time and at the end, and returns nil. It runs once.
func (c *Collector) Run(ctx context.Context) error {
	var looks sync.WaitGroup
	defer looks.Wait()
	if c.cfg.Keeper != nil {
		taken := make(chan struct{})
		looks.Go(func() { c.persist(ctx, taken) })
		<-taken // what a replica did before its first look may be in the past already
	}
	// Looks are on whole seconds: what is counted between two of them is of one second.
	next := time.NewTimer(untilSecond(time.Now()))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		now := time.Now()
		for _, w := range c.due(now) {
			looks.Go(func() { c.look(ctx, w) })
		}
		c.forget(now)
		next.Reset(untilSecond(time.Now()))
	}
}

func untilSecond(now time.Time) time.Duration {
	return now.Truncate(time.Second).Add(time.Second).Sub(now)
}

// due are the targets to look at now: those whose turn it is, and new ones, but none
// that is still being looked at.
func (c *Collector) due(now time.Time) []*watch {
	targets := c.cfg.Targets()
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.watches
	c.watches = map[Role]map[string]*watch{}
	var due []*watch
	for _, t := range targets {
		if c.watches[t.Role] == nil {
			c.watches[t.Role] = map[string]*watch{}
		}
		if c.watches[t.Role][t.Name] != nil {
			continue
		}
		w := before[t.Role][t.Name]
		if w == nil {
			w = &watch{Target: t}
		}
		delete(before[t.Role], t.Name)
		c.watches[t.Role][t.Name] = w
		w.Source = t.Source
		if !w.busy && (w.read == 0 && !w.failing || t.due(now.Unix())) {
			w.busy = true
			due = append(due, w)
		}
	}
	for _, role := range before {
		for _, w := range role {
			w.gone = true
			c.dropMeasures(w)
		}
	}
	return due
}

// look reads a target and takes in what it says.
func (c *Collector) look(ctx context.Context, w *watch) {
	places := c.few
	if w.Role == Sidecar {
		places = c.many
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return
	}
	c.mu.Lock()
	target, apps := w.Target, len(w.tallies)
	c.mu.Unlock()
	l, err := target.look(ctx, apps)
	if ctx.Err() == nil {
		c.take(w, l, err)
	}
}

func (c *Collector) take(w *watch, l look, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.busy = false
	c.note(w, err)
	if err != nil || w.gone {
		return
	}
	if l.tallies != nil {
		c.takeTallies(w, l)
	}
	w.conditions = l.conditions
	if l.leadership != nil {
		c.takeLeadership(w, l)
	}
	if l.replicas != nil {
		c.takeMeasures(w, l)
	}
	w.read = l.at.Unix()
}

// note logs when a target begins to fail, and when it no longer does.
func (c *Collector) note(w *watch, err error) {
	switch {
	case err != nil && !w.failing:
		c.cfg.Log.Warn("cannot read the metrics of a process; what it counts is unknown meanwhile", "role", w.Role, "name", w.Name, "err", err)
	case err == nil && w.failing:
		c.cfg.Log.Info("can read the metrics of the process again", "role", w.Role, "name", w.Name)
	}
	w.failing = err != nil
}

// forget drops the past of what is gone. While no process can be read, nothing is dropped.
func (c *Collector) forget(now time.Time) {
	if now.Unix()%minute != 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.apps, func(_ string, a *app) bool { return c.heard.Sub(a.seen) > kept })
	maps.DeleteFunc(c.readings, func(_ replicaKey, r *reading) bool { return now.Sub(r.at) > readingKept })
	maps.DeleteFunc(c.versions, func(_ serving.ModelID, v *version) bool { return c.told.Sub(v.seen) > kept })
}
