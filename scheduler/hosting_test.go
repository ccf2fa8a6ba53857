package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestAHostAndItsGuest is a version that the replicas of another hold: it gets no job,
// its demand is its host's, and it serves once a container has answered for it.
func TestAHostAndItsGuest(t *testing.T) {
	in(t, func(w *world) {
		host := version(serving.ModelID{Model: "small", Version: "1"}, &serving.ScaleSpec{Min: 1, Max: 10}, 0)
		host.Version.InputType, host.Version.Host = 0, &serving.HostSpec{MemoryMB: 64}
		guest := version(m1, nil, 1)
		guest.Version.HostedBy, guest.Version.Container = "small", serving.Container{Bundle: "sha256:" + strings.Repeat("ab", 32)}
		w.apply(host, catalog.SetCurrent{ID: host.Version.ModelID}, guest, catalog.SetCurrent{ID: m1}, app("m"))
		w.lead()
		time.Sleep(10 * time.Second)
		w.wantCount("the host", host.Version.ModelID, 1)
		w.wantCount("the guest", m1, -1)
		if got := w.servingNow("m"); got != "" {
			t.Errorf("%q serves before anybody has asked it", got)
		}
		w.setLoad(host.Version.ModelID, steady(1000)) // which gateways count for the host
		time.Sleep(10 * time.Second)
		if n := w.count(host.Version.ModelID); n < 3 {
			t.Errorf("the host has %d replicas under load, for which one is too few", n)
		}
		w.lock(func() { w.answered = []serving.ModelID{m1} })
		time.Sleep(3 * time.Second)
		if got := w.servingNow("m"); got != "1" {
			t.Errorf("%q serves after a container has answered", got)
		}
		for _, c := range w.calls {
			if c.id == m1 {
				t.Errorf("the guest was to have %d replicas of its own", c.count)
			}
		}
	})
}

// TestAService is a version that others run: it gets no job, whatever is asked of it, and serves once an instance has answered.
func TestAService(t *testing.T) {
	in(t, func(w *world) {
		v := version(m1, nil, 1)
		v.Version.Container, v.Version.Service = serving.Container{}, &serving.ServiceSpec{Name: "others", Protocol: serving.ServiceOIP}
		w.apply(v, catalog.SetCurrent{ID: m1}, app("m"))
		w.lead()
		w.setLoad(m1, steady(1000))
		time.Sleep(10 * time.Second)
		w.wantCount("the service", m1, -1)
		if got := w.servingNow("m"); got != "" {
			t.Errorf("%q serves before an instance has answered", got)
		}
		w.lock(func() { w.answered = []serving.ModelID{m1} })
		time.Sleep(3 * time.Second)
		if got := w.servingNow("m"); got != "1" {
			t.Errorf("%q serves after an instance has answered", got)
		}
		if len(w.calls) > 0 {
			t.Errorf("jobs were changed: %+v", w.calls)
		}
	})
}
