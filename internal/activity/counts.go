package activity

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/internal/obs"
)

// MaxPoints bounds the points of an interval; more are left out.
const MaxPoints = 5000

// Point is what one app, version or stage did in an interval.
type Point struct {
	Measurement string
	Tags        map[string]string
	Fields      map[string]float64 // numbers, sums of seconds, and gauges; those of 0 are left out, but where a bucket begins
}

// Counts remembers what the metrics of a process were, to say how much they have grown. It is for one goroutine.
type Counts struct {
	metrics  func(obs.Readers)
	series   map[string]*series  // by metric and labels
	subjects map[string]*subject // by measurement and tags
	round    uint64
	key      []byte // reused
}

// NewCounts counts the metrics that a function reads, from nothing, as a process does that has just started.
func NewCounts(metrics func(obs.Readers)) *Counts {
	return &Counts{metrics: metrics, series: map[string]*series{}, subjects: map[string]*subject{}}
}

// subject is what a point is about.
type subject struct {
	measurement string
	tags        map[string]string
	active      bool
	fields      map[string]float64 // of the round
	round       uint64             // in which it was last read
}

// series is what one of a metric was in the last round.
type series struct {
	of     *subject
	field  string
	round  uint64
	value  float64
	bounds []float64
	names  []string // of the fields of buckets
	counts []uint64
	sum    float64
}

// Take is what was done since it was called before, and how many points were too many.
func (c *Counts) Take() (points []Point, tooMany int) {
	c.round++
	readers := make(obs.Readers, len(table))
	for metric, row := range table {
		readers[metric] = func(s *obs.Series) { c.read(metric, row, s) }
	}
	c.metrics(readers)
	maps.DeleteFunc(c.series, func(_ string, s *series) bool { return s.round != c.round })
	for key, s := range c.subjects {
		switch {
		case s.round != c.round:
			delete(c.subjects, key)
		case s.active && len(points) == MaxPoints:
			tooMany++
		case s.active:
			points = append(points, Point{s.measurement, s.tags, maps.Clone(s.fields)})
		}
		s.active = false
		clear(s.fields)
	}
	return points, tooMany
}

// read takes in a series.
func (c *Counts) read(metric string, row row, now *obs.Series) {
	s := c.find(metric, row, now)
	s.round, s.of.round = c.round, c.round
	switch {
	case row.kind != counted:
		s.of.add(s.field, now.Value, row.kind == waiting)
	case len(now.Bounds) == 0:
		s.of.add(s.field, since(now.Value, s.value), true)
		s.value = now.Value
	default:
		s.readHistogram(now)
	}
}

// find finds or makes what is remembered of a series.
func (c *Counts) find(metric string, row row, now *obs.Series) *series {
	c.key = append(c.key[:0], metric...)
	c.key = now.AppendLabels(c.key)
	s := c.series[string(c.key)]
	if s != nil {
		return s
	}
	s = &series{of: c.subject(row.measurement, now), field: row.field}
	if row.by != "" {
		s.field = strings.TrimPrefix(row.field+"_"+now.Label(row.by), "_")
	}
	c.series[string(c.key)] = s
	return s
}

func (c *Counts) subject(measurement string, now *obs.Series) *subject {
	key, tags := []string{measurement}, map[string]string{}
	for _, tag := range tagsOf[measurement] {
		tags[tag] = now.Label(tag)
		key = append(key, tags[tag])
	}
	name := strings.Join(key, "\x00")
	if c.subjects[name] == nil {
		c.subjects[name] = &subject{measurement: measurement, tags: tags, fields: map[string]float64{}}
	}
	return c.subjects[name]
}

// add adds to a field; what is not 0 may be activity.
func (s *subject) add(field string, v float64, activity bool) {
	if v != 0 {
		s.fields[field] += v
		s.active = s.active || activity
	}
}

// readHistogram adds what has come to a histogram: to each bucket, and nothing to the bound where one begins
// that is not empty, which readers of percentiles must know. In the interval in which an app's objective changes, and
// its bounds with it, there are no buckets.
func (s *series) readHistogram(now *obs.Series) {
	before := s.counts
	var beforeCount uint64
	for _, n := range before {
		beforeCount += n
	}
	same := slices.Equal(s.bounds, now.Bounds)
	if !same {
		s.bounds, s.names = slices.Clone(now.Bounds), bucketNames(s.field, now.Bounds)
	}
	count := since(float64(now.Count()), float64(beforeCount))
	s.of.add(s.field+"_count", count, true)
	s.of.add(s.field+"_sum", since(now.Sum, s.sum), true)
	if count > 0 && (same || before == nil) {
		for i, n := range now.Counts {
			came := n
			if before != nil && before[i] <= n {
				came -= before[i]
			}
			if came == 0 {
				continue
			}
			s.of.fields[s.names[i]] += float64(came)
			if i > 0 {
				s.of.fields[s.names[i-1]] += 0
			}
		}
	}
	s.counts, s.sum = append(s.counts[:0], now.Counts...), now.Sum
}

// bucketNames are the fields of buckets with upper bounds, and of what is beyond.
func bucketNames(field string, bounds []float64) []string {
	names := make([]string, 0, len(bounds)+1)
	for _, b := range bounds {
		names = append(names, field+"_bucket_"+strconv.FormatFloat(b, 'g', -1, 64))
	}
	return append(names, field+"_bucket_+Inf")
}

// since is how much a counter has grown, which begins anew where its app or version was gone meanwhile.
func since(now, before float64) float64 {
	if now < before {
		return now
	}
	return now - before
}
