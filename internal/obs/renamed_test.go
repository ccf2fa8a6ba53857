package obs

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRenamedMetricsKeepTheirOldNames(t *testing.T) {
	r := NewRegistry()
	for name := range renamed {
		r.Gauges(name, "Of a test.", "of").WithLabelValues("x").Set(3)
	}
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for name, old := range renamed {
		for _, line := range []string{name + `{of="x"} 3`, old + `{of="x"} 3`, "# HELP " + old + " Deprecated: use " + name + "."} {
			if !strings.Contains(answer.Body.String(), line+"\n") {
				t.Errorf("the page lacks %s", line)
			}
		}
	}
}
