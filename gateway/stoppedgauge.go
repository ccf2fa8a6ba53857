package gateway

import (
	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/internal/obs"
)

var stoppedDesc = obs.NewDesc("topsail_selection_stopped", "1 while the app's policy has withdrawn a version that it tried; the log has the reason.", "app", "model", "version")

// stoppedGauge reads the policies' states when metrics are asked for.
type stoppedGauge struct{ predictor *predict.Predictor }

// Describe and Collect implement obs.Collector.
func (g stoppedGauge) Describe(ch chan<- *obs.Desc) { ch <- stoppedDesc }

func (g stoppedGauge) Collect(ch chan<- obs.Metric) {
	for app, tried := range g.predictor.Withdrawn() {
		for id, withdrawn := range tried {
			// A name that cannot be a label is left out.
			if m, err := obs.GaugeOf(stoppedDesc, flag(withdrawn), app, id.Model, id.Version); err == nil {
				ch <- m
			}
		}
	}
}
