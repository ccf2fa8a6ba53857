package traffic

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// conditions are what a gateway, or a process with streams, says that is not as it should be.
type conditions struct {
	at        time.Time
	failover  []serving.ModelID // current versions that another one answers for
	withdrawn []api.Withdrawn   // versions that policies have taken their queries from
	streams   map[string]*api.StreamNow
}

// stream finds or makes a stream.
func (c *conditions) stream(name string) *api.StreamNow {
	if c.streams[name] == nil {
		c.streams[name] = &api.StreamNow{Processes: 1, Conditions: []string{}}
	}
	return c.streams[name]
}

func readLag(now *api.StreamNow, s *obs.Series) { now.Lag = wholeNumber(s.Value) }

func readWaiting(now *api.StreamNow, s *obs.Series) { now.Waiting = number(s.Value) }

func readCondition(now *api.StreamNow, s *obs.Series) {
	if s.Value > 0 {
		now.Conditions = append(now.Conditions, s.Label("condition"))
	}
}

// wholeNumber is nil for what is not known.
func wholeNumber(v float64) *int64 {
	if !(v >= 0 && v < math.MaxInt64) {
		return nil
	}
	n := int64(v)
	return &n
}

// Streams says how the streams are that processes serve, by their names. The lag is that of a
// whole consumer group, whichever process says it.
func (c *Collector) Streams() map[string]*api.StreamNow {
	all := map[string]*api.StreamNow{}
	for _, one := range c.conditions() {
		for name, now := range one.streams {
			together := all[name]
			if together == nil {
				together = &api.StreamNow{}
				all[name] = together
			}
			together.Processes += now.Processes
			together.Waiting = max(together.Waiting, now.Waiting)
			together.Conditions = append(together.Conditions, now.Conditions...)
			if now.Lag != nil && (together.Lag == nil || *now.Lag > *together.Lag) {
				together.Lag = now.Lag
			}
		}
	}
	for _, now := range all {
		slices.Sort(now.Conditions)
		now.Conditions = append([]string{}, slices.Compact(now.Conditions)...)
	}
	return all
}

// FailedOver are the current versions without a replica that an earlier one answers for.
func (c *Collector) FailedOver() []serving.ModelID {
	var all []serving.ModelID
	for _, one := range c.conditions() {
		all = append(all, one.failover...)
	}
	slices.SortFunc(all, func(a, b serving.ModelID) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// Withdrawn are the versions that policies of apps tried, and have taken their queries from.
func (c *Collector) Withdrawn() []api.Withdrawn {
	var all []api.Withdrawn
	for _, one := range c.conditions() {
		all = append(all, one.withdrawn...)
	}
	slices.SortFunc(all, func(a, b api.Withdrawn) int {
		return cmp.Or(cmp.Compare(a.App, b.App), cmp.Compare(a.Version.String(), b.Version.String()))
	})
	return slices.Compact(all)
}

// conditions are those of the processes that were read lately.
func (c *Collector) conditions() []*conditions {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*conditions
	for _, role := range c.watches {
		for _, w := range role {
			if w.conditions != nil && time.Since(w.conditions.at) < current {
				all = append(all, w.conditions)
			}
		}
	}
	return all
}
