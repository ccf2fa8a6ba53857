//go:build servers

package deploy

import "testing"

// TestMetrics has processes run, so it is one test of all that is said about them.
func TestMetrics(t *testing.T) {
	m := exposed(t)
	t.Run("every registered one was seen", func(t *testing.T) { same(t, registered(t), "source", m.ours(), "processes") })
	t.Run("docs/metrics.md", func(t *testing.T) { metricsPage(t, m) })
	t.Run("every page", func(t *testing.T) { everyPage(t, m) })
	t.Run("rules", func(t *testing.T) { rulesOf(t, m) })
	t.Run("dashboard", func(t *testing.T) { dashboardOf(t, m) })
}
