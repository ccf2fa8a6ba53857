package dispatch

import "github.com/topsail-serving/topsail/internal/obs"

type metrics struct{ extra, wakes, warm, cold obs.Counter }

func newMetrics(r *obs.Registry) metrics {
	hosted := r.Counters("topsail_gateway_hosted_questions_total", "Requests to hosted model versions: warm if a replica had the version loaded, else cold.", "state")
	return metrics{
		warm: hosted.WithLabelValues("warm"), cold: hosted.WithLabelValues("cold"),
		extra: r.Counters("topsail_gateway_extra_calls_total", "Requests that went to a second replica.").WithLabelValues(),
		wakes: r.Counters("topsail_gateway_wakes_total", "Wake-ups of model versions without a ready replica.").WithLabelValues(),
	}
}

// hosted counts a question to a version that a host holds.
func (m *metrics) hosted(warm bool) {
	if warm {
		m.warm.Inc()
	} else {
		m.cold.Inc()
	}
}
