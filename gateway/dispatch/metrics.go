package dispatch

import "github.com/topsail-serving/topsail/internal/obs"

type metrics struct{ extra, wakes, warm, cold obs.Counter }

func newMetrics(r *obs.Registry) metrics {
	hosted := r.Counters("topsail_gateway_hosted_questions_total", "Questions to model versions that hosts hold: warm, where a replica had it loaded, or cold.", "state")
	return metrics{
		warm: hosted.WithLabelValues("warm"), cold: hosted.WithLabelValues("cold"),
		extra: r.Counters("topsail_gateway_extra_calls_total", "Questions that went to a second replica.").WithLabelValues(),
		wakes: r.Counters("topsail_gateway_wakes_total", "Times that a model version without a ready replica was woken.").WithLabelValues(),
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
