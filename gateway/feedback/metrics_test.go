package feedback

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

func TestSeriesComeAndGoWithTheirApps(t *testing.T) {
	registry := obs.NewRegistry()
	m := newMetrics(registry)
	series := func(app string) int {
		w := httptest.NewRecorder()
		registry.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return strings.Count(w.Body.String(), `app="`+app+`"`)
	}
	m.keep(map[string]*serving.App{"a": {}, "b": {}})
	m.count("a", trained, 1)
	m.models.WithLabelValues("a", "m", "1").Add(1)
	if a, b := series("a"), series("b"); a != 5 || b != 0 {
		t.Errorf("%d series of a and %d of b, want 5 and none: b has no feedback", a, b)
	}
	m.keep(map[string]*serving.App{"b": {}})
	if a, b := series("a"), series("b"); a != 0 || b != 0 {
		t.Errorf("after a is gone there are %d series of it and %d of b", a, b)
	}
}
