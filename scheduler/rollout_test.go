package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// servingNow is which version of a model serves, as noted in the catalog.
func (w *world) servingNow(model string) string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cat.Models[model].Serving
}

// follow sends the queries of m to the version that serves.
func (w *world) follow(rate uint64) {
	for _, id := range []serving.ModelID{m1, m2} {
		w.load[id] = func(time.Time) uint64 { // w.mu is held
			if w.cat.Models["m"].Serving == id.Version {
				return rate
			}
			return 0
		}
	}
}

// TestRollout rolls out a version under load, and back, and out again.
func TestRollout(t *testing.T) {
	in(t, func(w *world) {
		spec := &serving.ScaleSpec{Max: 20}
		w.deployed(m1, spec, 8)
		w.apply(app("m"))
		w.lock(func() { w.follow(2000); w.start = 20 * time.Second })
		w.lead()
		time.Sleep(2 * time.Minute)

		w.apply(version(m2, spec, 0))
		w.wantCount("the new version, at once", m2, 8)
		time.Sleep(19 * time.Second)
		if got := w.servingNow("m"); got != "1" {
			t.Errorf("%q serves before the new version is ready", got)
		}
		w.wantCount("the old version, meanwhile", m1, 8)
		time.Sleep(2 * time.Second)
		if got := w.servingNow("m"); got != "2" {
			t.Errorf("%q serves when the new version is ready", got)
		}
		for range 280 {
			time.Sleep(time.Second)
			if w.count(m1) != 8 || w.count(m2) != 8 {
				t.Fatalf("counts %d and %d in the minutes after", w.count(m1), w.count(m2))
			}
		}

		w.asked(m1)
		w.asked(m2)
		w.apply(catalog.SetCurrent{ID: m1})
		synctest.Wait()
		if got := w.servingNow("m"); got != "1" {
			t.Errorf("%q serves at once after the rollback", got)
		}
		if got := w.asked(m1); len(got) != 0 {
			t.Errorf("the rollback took %v", got)
		}
		time.Sleep(298 * time.Second)
		w.wantCount("kept for a rollback of the rollback", m2, 8)
		time.Sleep(6 * time.Second)
		w.wantCount("after 5 min", m2, 0)
		w.wantCount("after 5 min", m1, 8)

		time.Sleep(time.Minute)
		w.apply(catalog.SetCurrent{ID: m2})
		w.wantCount("brought back", m2, 8)
		time.Sleep(21 * time.Second)
		if got := w.servingNow("m"); got != "2" {
			t.Errorf("%q serves in the end", got)
		}
	})
}

// TestRolloutThatFails never gets the new version ready.
func TestRolloutThatFails(t *testing.T) {
	in(t, func(w *world) {
		spec := &serving.ScaleSpec{Max: 20}
		w.deployed(m1, spec, 8)
		w.apply(app("m"))
		w.lock(func() { w.follow(2000); w.start = 1000 * time.Hour })
		w.lead()
		w.apply(version(m2, spec, 0))
		time.Sleep(time.Hour)
		w.wantCount("the version that serves", m1, 8)
		if got := w.servingNow("m"); got != "1" {
			t.Errorf("%q serves", got)
		}
	})
}

// TestIncompleteRollout has the new version serve with one replica of eight: the
// old ones are kept.
func TestIncompleteRollout(t *testing.T) {
	in(t, func(w *world) {
		spec := &serving.ScaleSpec{Max: 20}
		w.deployed(m1, spec, 8)
		w.apply(app("m"))
		w.lock(func() { w.follow(2000); w.start = 8 * time.Minute })
		w.lead()
		w.apply(version(m2, spec, 0))
		synctest.Wait()
		w.lock(func() { w.jobs[m2].ready[0] = time.Now() })
		time.Sleep(time.Second)
		if got := w.servingNow("m"); got != "2" {
			t.Errorf("%q serves", got)
		}
		time.Sleep(7*time.Minute + 50*time.Second)
		w.wantCount("until the new version is complete", m1, 8)
		time.Sleep(20 * time.Second)
		w.wantCount("then", m1, 0)
	})
}

// TestServingCannotBeNoted goes on as soon as it can.
func TestServingCannotBeNoted(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 5}, 1)
		w.apply(version(m2, &serving.ScaleSpec{Max: 5}, 0))
		w.served = errAway
		w.lead()
		time.Sleep(time.Minute)
		if got := w.servingNow("m"); got != "1" {
			t.Errorf("%q serves", got)
		}
		w.lock(func() { w.served = nil })
		time.Sleep(2 * time.Second)
		if got := w.servingNow("m"); got != "2" {
			t.Errorf("%q serves", got)
		}
	})
}

// TestSlowNote takes a while to note that a version serves, and does so once.
func TestSlowNote(t *testing.T) {
	in(t, func(w *world) {
		w.apply(version(m1, &serving.ScaleSpec{Max: 5}, 0))
		w.serving = 3 * time.Second
		w.lead()
		time.Sleep(10 * time.Second)
		if got := w.servingNow("m"); got != "1" || w.notes != 1 {
			t.Errorf("%q serves, after %d notes", got, w.notes)
		}
	})
}

// TestReadyIsCounted sees replicas come and go.
func TestReadyIsCounted(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, nil, 2)
		w.lead()
		for _, gone := range []bool{false, true, false} {
			w.lock(func() {
				w.jobs[m1].ready = nil
				if !gone {
					w.jobs[m1].ready = []time.Time{{}, {}}
				}
			})
			time.Sleep(2 * time.Second)
			if s, _ := w.s.Explain(m1); (s.Ready == 0) != gone {
				t.Errorf("ready %d, gone %t", s.Ready, gone)
			}
		}
	})
}
