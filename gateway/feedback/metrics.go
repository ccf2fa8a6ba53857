package feedback

import (
	"maps"
	"slices"
	"sync"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// What can become of feedback.
const (
	trained   = "trained"
	duplicate = "duplicate"
	refused   = "refused"
	failed    = "failed"
)

type metrics struct {
	mu   sync.Mutex // guards the following
	apps []string   // that may have series

	pieces *obs.CounterVec
	loss   *obs.CounterVec
	judged *obs.CounterVec
	models *obs.CounterVec
	regret *obs.GaugeVec
}

func newMetrics(r *obs.Registry) *metrics {
	return &metrics{
		pieces: r.Counters("topsail_feedback_total", "Pieces of feedback: trained (also where a policy learns nothing), duplicate, refused or failed.", "app", "result"),
		loss:   r.Counters("topsail_feedback_loss_total", "Sum of the losses of answers by their feedback, 0 to 1 each; divided by the number trained it is the online error.", "app"),
		judged: r.Counters("topsail_feedback_models_total", "Outputs of model versions that feedback has judged.", "app", "model", "version"),
		models: r.Counters("topsail_feedback_model_loss_total", "Sum of their losses; divided by their number it is the online error of the version.", "app", "model", "version"),
		regret: r.Gauges("topsail_feedback_regret", "By how much the answers' losses, summed up, exceed what the best single model would have lost at its mean, as the app's state has them.", "app"),
	}
}

// keep removes the series of apps that are gone.
func (m *metrics) keep(apps map[string]*serving.App) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.apps {
		if apps[name] == nil {
			m.forget(obs.Labels{"app": name})
		}
	}
	m.apps = slices.Collect(maps.Keys(apps))
}

func (m *metrics) forget(l obs.Labels) {
	m.pieces.DeletePartialMatch(l)
	m.loss.DeletePartialMatch(l)
	m.judged.DeletePartialMatch(l)
	m.models.DeletePartialMatch(l)
	m.regret.DeletePartialMatch(l)
}

// count begins all series of an app with its first feedback, so that further increases are seen.
func (m *metrics) count(app, result string, n int) {
	for _, name := range []string{trained, duplicate, refused, failed} {
		m.pieces.WithLabelValues(app, name)
	}
	m.pieces.WithLabelValues(app, result).Add(float64(n))
}

func (m *metrics) learned(app string, f *selection.Feedback) {
	m.count(app, trained, 1)
	m.loss.WithLabelValues(app).Add(f.Loss)
	for i := range f.Outcomes {
		if o := &f.Outcomes[i]; o.Judged {
			m.judged.WithLabelValues(app, o.Model, o.Version).Inc()
			m.models.WithLabelValues(app, o.Model, o.Version).Add(o.Loss)
		}
	}
}

func (m *metrics) regrets(app string, s *selection.State) {
	m.regret.WithLabelValues(app).Set(s.Regret())
}
