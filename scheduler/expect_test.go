package scheduler_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// lock runs change with the world held still.
func (w *world) lock(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// apply makes a change of the catalog.
func (w *world) apply(changes ...catalog.Change) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range changes {
		require.NoError(w, w.applyLocked(c))
	}
}

func (w *world) applyLocked(c catalog.Change) error {
	cat, err := catalog.Apply(w.cat, c, 0)
	if err != nil || cat == w.cat {
		return err
	}
	w.cat = cat
	close(w.newCat)
	w.newCat = make(chan struct{})
	return nil
}

func version(id serving.ModelID, spec *serving.ScaleSpec, replicas int) catalog.PutVersion {
	return catalog.PutVersion{Version: serving.Version{ModelID: id, InputType: serving.Floats, Replicas: replicas, Scale: spec, Container: serving.Container{Command: []string{"model"}}}}
}

func app(models ...string) catalog.PutApp {
	return catalog.PutApp{App: serving.App{Name: "app", InputType: serving.Floats, SLO: serving.Duration(slo), Models: models}}
}

// deployed registers the version with the count running, ready and serving.
func (w *world) deployed(id serving.ModelID, spec *serving.ScaleSpec, count int) {
	w.apply(version(id, spec, count), catalog.SetServing{id})
	w.lock(func() { w.jobs[id] = w.newJob(id, count, 0) })
}

// steady is a load that does not change.
func steady(rate uint64) func(time.Time) uint64 { return func(time.Time) uint64 { return rate } }

func (w *world) setLoad(id serving.ModelID, load func(time.Time) uint64) {
	w.lock(func() { w.load[id] = load })
}

// count is how many replicas there shall be; -1: there is no job.
func (w *world) count(id serving.ModelID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs[id] == nil {
		return -1
	}
	return w.jobs[id].Count
}

func (w *world) wantCount(when string, id serving.ModelID, want int) {
	w.Helper()
	synctest.Wait()
	if got := w.count(id); got != want {
		status, _ := w.s.Explain(id)
		w.Errorf("%s: %v has a count of %d, want %d; %s: %s", when, id, got, want, status.Decision.Rule, status.Decision.Reason)
	}
}

// asked is the changes of a version since the last time, and forgets them.
func (w *world) asked(id serving.ModelID) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	var its []call
	w.calls = slices.DeleteFunc(w.calls, func(c call) bool {
		if c.id == id {
			its = append(its, c)
		}
		return c.id == id
	})
	return its
}

// journaled is the decisions kept so far, and forgets them.
func (w *world) journaled() []serving.Decision {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.decisions
	w.decisions = nil
	return all
}

// wantMetric wants a line of the metrics that begins so, or none after "! ".
func (w *world) wantMetric(when string, wants ...string) {
	w.Helper()
	synctest.Wait()
	answer := httptest.NewRecorder()
	w.reg.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range wants {
		line, none := strings.CutPrefix(want, "! ")
		if strings.Contains("\n"+answer.Body.String(), "\n"+line) == none {
			w.Errorf("%s, metrics do not say %q", when, want)
		}
	}
}

// countJobs is how many jobs there are, and countCalls how many changes were asked for.
func (w *world) countJobs() int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs)
}

func (w *world) countCalls() int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}
