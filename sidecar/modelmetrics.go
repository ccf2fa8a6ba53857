package sidecar

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// modelMetrics exposes what models count themselves. Nothing is described in
// advance, since it is not known what models will count. Nothing that a model sends
// may break a scrape, which would take all other metrics with it.
type modelMetrics struct {
	mu     sync.Mutex
	latest map[metricSource]map[string]rpc.Metric // by seriesKey
}

// metricSource is the container that a metric comes from.
type metricSource struct {
	model     serving.ModelID
	replica   string
	container string // which of the replica's; empty: the only one, or the first
}

func newModelMetrics() *modelMetrics {
	return &modelMetrics{latest: map[metricSource]map[string]rpc.Metric{}}
}

// put replaces what is known of the metrics in list. Metrics that cannot be
// exposed are left out.
func (m *modelMetrics) put(from metricSource, list []rpc.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.latest[from]
	if known == nil {
		known = map[string]rpc.Metric{}
		m.latest[from] = known
	}
	for _, metric := range list {
		if !clean(&metric) {
			continue
		}
		key := seriesKey(&metric)
		if _, ok := known[key]; ok || len(known) < maxModelMetrics {
			known[key] = metric
		}
	}
}

// forget drops what all containers of a replica have counted for a model.
func (m *modelMetrics) forget(model serving.ModelID, replica string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.latest, func(from metricSource, _ map[string]rpc.Metric) bool {
		return from.model == model && from.replica == replica
	})
}

func (m *modelMetrics) writeSeries(to *obs.SeriesWriter) {
	families := map[string]rpc.Metric{} // the first of each name, whose kind and help stand for all
	for _, s := range m.series() {
		first, ok := families[s.metric.Name]
		if !ok {
			if nameTaken(s.metric.Name, families) {
				continue
			}
			first = s.metric
			families[first.Name] = first
		}
		if s.metric.Kind != first.Kind {
			continue
		}
		s.metric.Help = first.Help
		expose(to, s.from, &s.metric)
	}
}

type modelSeries struct {
	from   metricSource
	key    string
	metric rpc.Metric
}

// series lists all, in an order that is the same for every scrape and has a
// histogram before the names that it could be confused with.
func (m *modelMetrics) series() []modelSeries {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []modelSeries
	for from, known := range m.latest {
		for key, metric := range known {
			all = append(all, modelSeries{from, key, metric})
		}
	}
	slices.SortFunc(all, func(a, b modelSeries) int {
		return cmp.Or(
			cmp.Compare(a.metric.Name, b.metric.Name),
			cmp.Compare(a.from.model.String(), b.from.model.String()),
			cmp.Compare(a.from.replica, b.from.replica),
			cmp.Compare(a.from.container, b.from.container),
			cmp.Compare(a.key, b.key),
		)
	})
	return all
}
