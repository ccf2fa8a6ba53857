package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

var failoverDesc = obs.NewDesc("topsail_gateway_failover", "1 while the current version of a model has lost all ready replicas and an earlier version answers.", "model", "version")

// failoverGauge looks at the versions when metrics are asked for.
type failoverGauge struct{ predictor *predict.Predictor }

// Describe and Collect implement obs.Collector.
func (g failoverGauge) Describe(ch chan<- *obs.Desc) { ch <- failoverDesc }

func (g failoverGauge) Collect(ch chan<- obs.Metric) {
	for id, failedOver := range g.predictor.FailedOver() {
		// A model's name that cannot be a label is left out.
		if m, err := obs.GaugeOf(failoverDesc, flag(failedOver), id.Model, id.Version); err == nil {
			ch <- m
		}
	}
}

// Conditions are what is not as it should be, though the gateway answers: nil, or an error of a
// line for each.
func (g *Gateway) Conditions() error {
	var errs []error
	failed := g.FailedOver()
	for _, id := range slices.SortedFunc(maps.Keys(failed), func(a, b serving.ModelID) int { return cmp.Compare(a.String(), b.String()) }) {
		if failed[id] {
			errs = append(errs, fmt.Errorf("%v has lost all its replicas; the version before it answers", id))
		}
	}
	return errors.Join(errs...)
}
