package traffic

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

const (
	maxStatuses     = 32             // of answers that are kept
	maxPerformances = 5000           // those measured last are kept
	readingKept     = 24 * time.Hour // after which a replica that is not read is taken to be gone
)

// performance is what the replicas of a definition have done. Nothing ends it but too many
// others: a version without replicas shows what it did.
type performance struct {
	since, seen time.Time // when the first began, and when something was last added
	sums        *sums
}

// reading is what was last read of a replica, which is in the performance of what it runs.
type reading struct {
	at         time.Time
	began      time.Time // zero: it has not said so yet, nor what it runs
	generation string
	*sums
}

// readStart reads when the replica began, and as what.
func (r *reading) readStart(s *obs.Series) {
	if v := number(s.Value); v > 0 && v < math.MaxInt32 {
		r.began, r.generation = time.UnixMilli(int64(math.Round(v*1000))).UTC(), s.Label("generation")
	}
}

// since is what the replica did after an earlier reading. One that began anew, or as
// something else, has done all of it since then.
func (r *reading) since(before *reading) *sums {
	if before == nil || before.generation != r.generation || !before.began.Equal(r.began) {
		return r.sums
	}
	return r.sums.since(before.sums)
}

// perform adds what a replica did since it was last read to the performance of what it runs.
func (c *Collector) perform(key replicaKey, r *reading) {
	before := c.readings[key]
	if r.began.IsZero() || before == nil && len(c.readings) >= maxReplicas {
		return
	}
	own := *r // not what else was measured beside it
	c.readings[key] = &own
	if came := r.since(before); !came.empty() {
		id := serving.Definition{ModelID: serving.ModelID{Model: key.model, Version: key.version}, Generation: r.generation}
		p := c.performance(id, r.began)
		p.sums, p.seen = p.sums.plus(came), r.at
		if r.began.Before(p.since) {
			p.since = r.began
		}
	}
}

// performance finds or makes one; the one that has waited longest for more makes way.
func (c *Collector) performance(id serving.Definition, since time.Time) *performance {
	p := c.performances[id]
	if p != nil {
		return p
	}
	if len(c.performances) >= maxPerformances {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(c.performances)), func(a, b serving.Definition) int {
			return c.performances[a].seen.Compare(c.performances[b].seen)
		})
		delete(c.performances, oldest)
	}
	p = &performance{since: since, sums: &sums{}}
	c.performances[id] = p
	return p
}

// Performance implements api.Traffic.
func (c *Collector) Performance(definitions []serving.Definition) *api.Performance {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := performance{sums: &sums{}}
	for _, id := range definitions {
		if p := c.performances[id]; p != nil {
			all.sums = all.sums.plus(p.sums)
			if all.since.IsZero() || p.since.Before(all.since) {
				all.since = p.since
			}
		}
	}
	return all.show()
}

// show is nil where nothing was measured. Models with stages have no batches of their own.
func (p *performance) show() *api.Performance {
	failed := p.sums.ended["model_error"] + p.sums.ended["bad_input"] + p.sums.ended["container"]
	answers := p.sums.ended["ok"] + failed // others the model has not seen
	s := api.Performance{Since: p.since, Answers: uint64(answers), Batches: uint64(p.sums.batches)}
	if answers == 0 && p.sums.batches == 0 {
		return nil
	}
	if answers > 0 {
		s.Errors = known(failed / answers)
	}
	if p.sums.batches > 0 {
		s.BatchMean = rounded(p.sums.inputs / p.sums.batches)
	}
	if n := p.sums.run.total(); n > 0 && p.sums.run.seconds > 0 && s.BatchMean != nil {
		s.Throughput = rounded(p.sums.inputs / p.sums.batches * n / p.sums.run.seconds)
		times := inMicros([]*float64{known(p.sums.run.quantile(0.5)), known(p.sums.run.quantile(0.99))})
		s.P50, s.P99 = times[0], times[1]
	}
	return &s
}

func rounded(v float64) *float64 { return known(math.Round(v*100) / 100) }

// keptPerformance and keptReading are what is kept of these for processes that start.
type keptPerformance struct {
	serving.Definition
	Since, Seen time.Time
	Sums        keptSums
}

type keptReading struct {
	Model, Version, Replica, Generation string
	At, Began                           time.Time
	Sums                                keptSums
}

type keptSums struct {
	Ended                    map[string]float64
	Batches, Inputs, Seconds float64
	Bounds, Counts           []float64
}

func (s *sums) keep() keptSums {
	k := keptSums{Ended: s.ended, Batches: s.batches, Inputs: s.inputs, Seconds: s.run.seconds}
	k.Bounds, k.Counts = s.run.parts()
	return k
}

// read is false for sums that cannot be.
func (k keptSums) read() (*sums, bool) {
	numbers := append(slices.Collect(maps.Values(k.Ended)), k.Batches, k.Inputs, k.Seconds)
	odd := slices.ContainsFunc(slices.Concat(numbers, k.Counts), func(v float64) bool { return number(v) != v })
	if odd || len(k.Ended) > maxStatuses {
		return nil, false
	}
	s := &sums{ended: k.Ended, batches: k.Batches, inputs: k.Inputs}
	if len(k.Bounds) == 0 {
		return s, true
	}
	run, ok := histogramOf(k.Bounds, k.Counts)
	s.run = timing{run, k.Seconds}
	return s, ok
}

// knownPerformance puts all performances and readings into a past. The caller holds the lock.
func (c *Collector) knownPerformance(p *past) {
	for id, one := range c.performances {
		p.Performances = append(p.Performances, keptPerformance{id, one.since, one.seen, one.sums.keep()})
	}
	for key, r := range c.readings {
		p.Readings = append(p.Readings, keptReading{key.model, key.version, key.replica, r.generation, r.at, r.began, r.sums.keep()})
	}
}

// restorePerformance takes over what is not known here, or begins later than what was
// kept. The caller holds the lock.
func (c *Collector) restorePerformance(p past) {
	slices.SortFunc(p.Performances, func(a, b keptPerformance) int { return cmp.Or(a.Seen.Compare(b.Seen), a.Compare(b.ModelID)) })
	for _, kept := range p.Performances {
		s, ok := kept.Sums.read()
		own := c.performances[kept.Definition]
		if ok && (own == nil || kept.Since.Before(own.since)) {
			*c.performance(kept.Definition, kept.Since) = performance{kept.Since, kept.Seen, s}
		}
	}
	for _, kept := range p.Readings {
		key := replicaKey{kept.Model, kept.Version, kept.Replica}
		if s, ok := kept.Sums.read(); ok && c.readings[key] == nil && len(c.readings) < maxReplicas {
			c.readings[key] = &reading{kept.At, kept.Began, kept.Generation, s}
		}
	}
}
