package scheduler_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestLoadMetrics shows demand and capacity while they are known.
func TestLoadMetrics(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, nil, 2)
		w.apply(app("m"))
		w.setLoad(m1, steady(500))
		w.lead()
		capacity := fmt.Sprintf(`topsail_scheduler_capacity{model="m",version="1"} %v`, 2*each)
		w.wantMetric("at first", "! topsail_scheduler_demand{", "! topsail_scheduler_capacity{")
		time.Sleep(70 * time.Second)
		w.wantMetric("known", `topsail_scheduler_demand{model="m",version="1"} 500`, capacity)
		w.lock(func() { w.deaf = errAway })
		time.Sleep(20 * time.Second)
		w.wantMetric("demand unknown", "! topsail_scheduler_demand{", capacity)
		w.apply(catalog.DeleteApp{Name: "app"})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		w.wantMetric("no objective", "! topsail_scheduler_capacity{")
	})
}
