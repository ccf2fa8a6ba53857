package gateway

import (
	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/internal/obs"
)

var stoppedDesc = obs.NewDesc("topsail_selection_stopped", "1 while a version that the app's policy tries is rolled back; the log has the reason.", "app")

// stoppedGauge reads the policies' states when metrics are asked for.
type stoppedGauge struct{ predictor *predict.Predictor }

// Describe and Collect implement obs.Collector.
func (g stoppedGauge) Describe(ch chan<- *obs.Desc) { ch <- stoppedDesc }

func (g stoppedGauge) Collect(ch chan<- obs.Metric) {
	for app, why := range g.predictor.Stopped() {
		// An app's name that cannot be a label is left out.
		if m, err := obs.GaugeOf(stoppedDesc, flag(why != ""), app); err == nil {
			ch <- m
		}
	}
}
