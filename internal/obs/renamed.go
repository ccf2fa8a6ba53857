package obs

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// renamed are the old names of metrics, by the new ones. Both are served for one release.
var renamed = map[string]string{
	"topsail_gateway_cold_start_queue":         "topsail_gateway_held",
	"topsail_model_stream_in_flight_seconds":   "topsail_model_stream_in_hand_seconds",
	"topsail_model_stream_retries_total":       "topsail_model_stream_tried_again_total",
	"topsail_selection_state_mismatches_total": "topsail_selection_state_misfits_total",
	"topsail_store_unavailable":                "topsail_store_away",
	"topsail_stream_in_flight_seconds":         "topsail_stream_in_hand_seconds",
	"topsail_stream_redelivered_total":         "topsail_stream_repeated_total",
	"topsail_stream_retries_total":             "topsail_stream_asked_again_total",
}

// withOldNames gathers renamed metrics under both names.
type withOldNames struct{ prometheus.Gatherer }

func (g withOldNames) Gather() ([]*Family, error) {
	families, err := g.Gatherer.Gather()
	for _, f := range families {
		if old, ok := renamed[f.GetName()]; ok {
			help := "Deprecated: use " + f.GetName() + "."
			families = append(families, &Family{Name: &old, Help: &help, Type: f.Type, Unit: f.Unit, Metric: f.Metric})
		}
	}
	slices.SortFunc(families, func(a, b *Family) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return families, err
}
