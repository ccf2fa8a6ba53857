package activity

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/obs"
)

var (
	answers   = obs.NewDesc("topsail_gateway_answers_total", "Answers.", "app", "cause")
	took      = obs.NewDesc("topsail_gateway_query_seconds", "Times.", "app")
	objective = obs.NewDesc("topsail_gateway_objective_seconds", "Objectives.", "app")
	queue     = obs.NewDesc("topsail_sidecar_queue_length", "Queues.", "model", "version", "replica")
)

// gateway is a process whose metrics are what its fields say.
type gateway struct {
	answers map[string]float64 // by cause
	bounds  []float64
	counts  []uint64
	sum     float64
	queues  map[string]float64 // by replica
	apps    int                // more of them, each with as many answers as told
	each    float64
}

func (g *gateway) writeSeries(to *obs.SeriesWriter) {
	for cause, n := range g.answers {
		to.Counter(answers, n, "wine", cause)
	}
	to.Gauge(objective, 0.02, "wine")
	if g.bounds != nil {
		to.Histogram(took, g.bounds, g.counts, g.sum, "wine")
	}
	for replica, n := range g.queues {
		to.Gauge(queue, n, "forest", "1", replica)
	}
	for i := range g.apps {
		to.Counter(answers, g.each, fmt.Sprint("app-", i), "ok")
	}
}

func (g *gateway) counting() *Counts {
	registry := obs.NewRegistry()
	registry.Add(g.writeSeries, answers, took, objective, queue)
	return NewCounts(registry.Read)
}

type fields map[string]float64

// expect is what was done by wine and by forest since.
func expect(t *testing.T, c *Counts, wine, forest fields) {
	t.Helper()
	points, tooMany := c.Take()
	if tooMany != 0 {
		t.Errorf("%d points too many", tooMany)
	}
	got := map[string]fields{}
	for _, p := range points {
		var names []string
		for _, tag := range slices.Sorted(maps.Keys(p.Tags)) {
			names = append(names, tag+"="+p.Tags[tag])
		}
		got[p.Measurement+" "+strings.Join(names, " ")] = p.Fields
	}
	want := map[string]fields{}
	if wine != nil {
		want["topsail_apps app=wine"] = wine
	}
	if forest != nil {
		want["topsail_versions model=forest version=1"] = forest
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it did %v, want %v", got, want)
	}
}

func TestCounts(t *testing.T) {
	g := &gateway{answers: map[string]float64{"ok": 5}}
	c := g.counting()
	expect(t, c, fields{"answers_ok": 5, "objective_seconds": 0.02}, nil)
	expect(t, c, nil, nil) // an objective alone is no activity

	g.answers = map[string]float64{"ok": 7, "missed_slo": 1}
	expect(t, c, fields{"answers_ok": 2, "answers_missed_slo": 1, "objective_seconds": 0.02}, nil)

	g.answers = map[string]float64{"ok": 3} // the app was deleted, and came again
	expect(t, c, fields{"answers_ok": 3, "objective_seconds": 0.02}, nil)

	g.queues = map[string]float64{"r1": 2, "r2": 3} // replicas stuck with what waits
	expect(t, c, nil, fields{"queue_length": 5})
	expect(t, c, nil, fields{"queue_length": 5})
	g.queues = map[string]float64{"r2": 0}
	expect(t, c, nil, nil)
}

func TestCountsOfHistograms(t *testing.T) {
	g := &gateway{bounds: []float64{0.001, 0.0105, 0.02}, counts: []uint64{0, 2, 0, 0}, sum: 0.25}
	c := g.counting()
	expect(t, c, fields{
		"query_seconds_count": 2, "query_seconds_sum": 0.25, "query_seconds_bucket_0.0105": 2, "query_seconds_bucket_0.001": 0, "objective_seconds": 0.02,
	}, nil)

	g.counts, g.sum = []uint64{1, 2, 1, 1}, 1.25
	expect(t, c, fields{
		"query_seconds_count": 3, "query_seconds_sum": 1, "query_seconds_bucket_0.001": 1, "query_seconds_bucket_0.0105": 0,
		"query_seconds_bucket_0.02": 1, "query_seconds_bucket_+Inf": 1, "objective_seconds": 0.02,
	}, nil)

	// Other bounds, for another objective: how the answers between spread is not known.
	g.bounds, g.counts, g.sum = []float64{0.0105, 0.1}, []uint64{3, 4, 0}, 2.25
	expect(t, c, fields{"query_seconds_count": 2, "query_seconds_sum": 1, "objective_seconds": 0.02}, nil)
	g.counts, g.sum = []uint64{4, 4, 0}, 2.375
	expect(t, c, fields{"query_seconds_count": 1, "query_seconds_sum": 0.125, "query_seconds_bucket_0.0105": 1, "objective_seconds": 0.02}, nil)
}

// TestMeasurementsOfReplicas: a process that calls services has several replicas of a version, which are one point.
func TestMeasurementsOfReplicas(t *testing.T) {
	registry := obs.NewRegistry()
	sizes := registry.Histograms("topsail_sidecar_batch_size", "Sizes.", []float64{1, 2, 4}, "model", "version", "replica")
	inputs := registry.Counters("topsail_stage_inputs_total", "Inputs.", "model", "version", "replica", "stage", "status")
	chosen := registry.Counters("topsail_selection_models_total", "Choices.", "app", "model", "version", "event")
	c := NewCounts(registry.Read)
	sizes.WithLabelValues("forest", "1", "a").Observe(2)
	sizes.WithLabelValues("forest", "1", "b").Observe(2)
	expect(t, c, nil, fields{"batch_size_count": 2, "batch_size_sum": 4, "batch_size_bucket_1": 0, "batch_size_bucket_2": 2})
	inputs.WithLabelValues("forest", "1", "a", "scale", "ok").Inc()
	chosen.WithLabelValues("wine", "forest", "1", "asked").Add(2)
	points, _ := c.Take()
	slices.SortFunc(points, func(a, b Point) int { return strings.Compare(a.Measurement, b.Measurement) })
	if want := []Point{
		{"topsail_app_models", map[string]string{"app": "wine", "model": "forest", "version": "1"}, fields{"asked": 2}},
		{"topsail_stages", map[string]string{"model": "forest", "version": "1", "stage": "scale"}, fields{"inputs_ok": 1}},
	}; !reflect.DeepEqual(points, want) {
		t.Errorf("it did %v, want %v", points, want)
	}
}

func TestCountsAreBounded(t *testing.T) {
	g := &gateway{apps: MaxPoints + 7, each: 1}
	c := g.counting()
	if points, tooMany := c.Take(); len(points) != MaxPoints || tooMany != 7 {
		t.Errorf("%d points and %d too many", len(points), tooMany)
	}
	if points, tooMany := c.Take(); len(points) != 0 || tooMany != 0 {
		t.Errorf("%d points and %d too many where nothing was done", len(points), tooMany)
	}
	g.apps = 0
	c.Take()
	if len(c.series) != 1 || len(c.subjects) != 1 { // the objective of wine
		t.Errorf("%d series and %d subjects are remembered", len(c.series), len(c.subjects))
	}
}

// BenchmarkTake is a second of a gateway with 1,000 apps, of which 100 were asked.
func BenchmarkTake(b *testing.B) {
	bounds, counts := make([]float64, 130), make([]uint64, 131)
	for i := range bounds {
		bounds[i] = float64(i + 1)
	}
	second := uint64(0)
	registry := obs.NewRegistry()
	registry.Add(func(to *obs.SeriesWriter) {
		for i := range 1000 {
			n := uint64(50)
			if i < 100 {
				n += 100 * second
			}
			for j := 40; j < 60; j++ {
				counts[j] = n / 20
			}
			app := fmt.Sprint("app-", i)
			to.Counter(answers, float64(n), app, "ok")
			to.Gauge(objective, 0.02, app)
			to.Histogram(took, bounds, counts, float64(n)*0.01, app)
		}
	}, answers, took, objective)
	c := NewCounts(registry.Read)
	for b.Loop() {
		second++
		c.Take()
	}
}
