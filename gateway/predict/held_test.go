package predict

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// later asks in the background; the result is there when the bubble has settled
// after its answer.
func (r *rig) later(q *serving.Query) *result {
	res := &result{}
	res.done.Go(func() { res.Prediction, res.took = r.predict(q) })
	r.settle()
	return res
}

type result struct {
	serving.Prediction
	took time.Duration
	done sync.WaitGroup
}

// wait waits for the answer, and for what the gateway does once it has answered.
func (r *result) wait() {
	r.done.Wait()
	synctest.Wait()
}

func (r *rig) wantQueued(n int) {
	r.Helper()
	r.settle()
	if queued := r.p.dispatch.Queued(); queued != n {
		r.Errorf("%d questions are held, want %d", queued, n)
	}
}

func TestAQueryWaitsForAReplica(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		res := t.later(newQuery(7))
		t.wantQueued(1)
		time.Sleep(30 * time.Millisecond)
		f := t.replica("a", echoes(time.Millisecond), m1)
		t.wantQueued(0)
		res.wait()
		t.wantOutput(res.Prediction, 7)
		if res.took != 31*time.Millisecond {
			t.Errorf("it took %v", res.took)
		}
		if asked := f.questions(); len(asked) != 1 || asked[0].budget != slo-margin-30*time.Millisecond {
			t.Errorf("asked %+v, want what is left of the time", asked)
		}
	})
}

func TestAHeldQuestionEndsWithItsDeadline(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		a, took := t.predict(newQuery(7))
		t.wantDefault(a, serving.NoReplica)
		if took != slo-margin || a.Explanation != "No connected models found for query" {
			t.Errorf("after %v: %q", took, a.Explanation)
		}
		t.wantQueued(0)
		f := t.replica("a", echoes(0), m1)
		if n := len(f.questions()); n != 0 {
			t.Errorf("%d questions were sent that nobody waits for", n)
		}
		if t.version(m1).Cold() {
			t.Error("it is cold although nobody waits")
		}
		a, took = t.predict(newQuery(7))
		t.wantOutput(a, 7)
		if took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A query without any time left is answered at once, and leaves nothing behind.
func TestALateQueryIsNotQueued(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		q := newQuery(7)
		time.Sleep(slo)
		a, took := t.predict(q)
		t.wantDefault(a, serving.NoReplica)
		if took != 0 {
			t.Errorf("it took %v", took)
		}
		t.wantQueued(0)
	})
}

// A held question lives as long as anybody waits for it, and has that time when it
// is sent.
func TestEqualQueriesWaitTogether(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		short := newQuery(7)
		short.Timeout = 20 * time.Millisecond
		first := t.later(short)
		second := t.later(newQuery(7))
		time.Sleep(10 * time.Millisecond)
		third := t.later(newQuery(7))
		t.wantQueued(1)
		first.wait()
		t.wantDefault(first.Prediction, serving.NoReplica)
		t.wantQueued(1)
		time.Sleep(30*time.Millisecond + margin)
		f := t.replica("a", echoes(time.Millisecond), m1)
		for _, res := range []*result{second, third} {
			res.wait()
			t.wantOutput(res.Prediction, 7)
		}
		if asked := f.questions(); len(asked) != 1 || asked[0].budget != slo-margin-40*time.Millisecond {
			t.Errorf("asked %+v, want what the last to come has left", asked)
		}
		t.wantMissed(1)
	})
}

func TestAJoinerWithLessTimeLeavesTheOthersWaiting(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		first := t.later(newQuery(7))
		short := newQuery(7)
		short.Timeout = 20 * time.Millisecond
		a, took := t.predict(short)
		t.wantDefault(a, serving.NoReplica)
		if took != 20*time.Millisecond-margin {
			t.Errorf("it took %v", took)
		}
		t.wantQueued(1)
		t.replica("a", echoes(0), m1)
		first.wait()
		t.wantOutput(first.Prediction, 7)
		t.wantMissed(1)
	})
}

// wantMissed compares the questions that neither the cache nor another answered.
func (r *rig) wantMissed(n float64) {
	r.Helper()
	if got := r.metric(`topsail_gateway_cache_total{app="app",result="missed"}`); got != n {
		r.Errorf("%v questions were asked anew, want %v", got, n)
	}
}

// A context that ends takes its question along. Who waits for the same asks again.
func TestACancelledQueryIsNotQueued(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan error, 2)
		go func() {
			_, err := one(ctx, t.p, newQuery(7))
			gone <- err
		}()
		t.settle()
		short := newQuery(7)
		short.Timeout = 50 * time.Millisecond // so that the question is the other's to the end
		joined := t.later(short)
		go func() {
			_, err := t.p.Predict(ctx, *newQuery(8), *newQuery(9))
			gone <- err
		}()
		t.wantQueued(3)
		cancel()
		for range 2 {
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		}
		t.wantQueued(1)
		f := t.replica("a", echoes(0), m1)
		joined.wait()
		t.wantOutput(joined.Prediction, 7)
		if n := len(f.questions()); n != 1 {
			t.Errorf("%d questions were sent", n)
		}
	})
}

// There is an end to what is held: for one version, and for all.
func TestTheRoomForHeldQuestions(t *testing.T) {
	names := []string{"a", "b", "c"}
	catalog := func(t *rig) {
		var models []*serving.Model
		var all []*serving.App
		for _, name := range names {
			models, all = append(models, newModel(id(name, "1"))), append(all, newApp(name, name))
		}
		t.set(newCatalog(all, models...))
	}
	ask := func(t *rig, app string, n int, bytes int) *sync.WaitGroup {
		qs := make([]serving.Query, n)
		for i := range qs {
			qs[i] = *newQuery(make([]float64, bytes/8)...)
			qs[i].App, qs[i].NoCache = app, true
		}
		var all sync.WaitGroup
		all.Go(func() { t.batch(qs) })
		t.settle()
		return &all
	}
	bubble(t, func(t *rig) {
		const total, share = 200, 200 / maxHeldShare
		t.p.dispatch.Limits.Questions = total
		catalog(t)
		waits := []*sync.WaitGroup{ask(t, "a", share+10, 8)}
		t.wantQueued(share)
		q := newQuery(1)
		q.App = "a"
		a, took := t.predict(q)
		t.wantDefault(a, serving.NoReplica)
		if took != 0 {
			t.Errorf("without room it took %v", took)
		}
		waits = append(waits, ask(t, "b", share-1, 8), ask(t, "c", 10, 8))
		t.wantQueued(total)
		for _, w := range waits {
			w.Wait()
		}
		t.wantQueued(0)
		w := ask(t, "c", 10, 8)
		t.wantQueued(10)
		w.Wait()
	})
	bubble(t, func(t *rig) {
		const each, total = 4096, 100 * (4096 + questionBytes)
		t.p.dispatch.Limits.Bytes = total
		catalog(t)
		waits := []*sync.WaitGroup{ask(t, "a", 60, each)}
		t.wantQueued(100 / maxHeldShare)
		waits = append(waits, ask(t, "b", 49, each), ask(t, "c", 10, each))
		t.wantQueued(100)
		for _, w := range waits {
			w.Wait()
		}
		t.wantQueued(0)
		if n := t.p.dispatch.QueuedBytes(); n != 0 {
			t.Errorf("%d bytes are taken by nobody", n)
		}
	})
}

// Without room, what a ready replica can answer is sent as ever.
func TestWithoutRoomAReadyReplicaIsAsked(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		queued := t.later(newQuery(1))
		silence := t.replica("a", silent, m1) // keeps the version cold
		t.p.dispatch.Limits.Questions = 1
		res := t.later(newQuery(2))
		if n := len(silence.questions()); n != 2 {
			t.Errorf("%d questions were sent", n)
		}
		queued.wait()
		res.wait()
	})
}

func TestColdStart(t *testing.T) {
	const cold = 5 * time.Second
	patient := func(a *serving.App) { a.ColdStart = serving.Duration(cold) }
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		res := t.later(newQuery(7))
		time.Sleep(3 * time.Second)
		f := t.replica("a", echoes(time.Second), m1)
		res.wait()
		t.wantOutput(res.Prediction, 7)
		if asked := f.questions(); asked[0].budget != cold-margin-3*time.Second {
			t.Errorf("asked with %v", asked[0].budget)
		}
		a, took := t.predict(newQuery(8)) // it is not cold any more
		t.wantDefault(a, serving.MissedSLO)
		if took != slo-margin {
			t.Errorf("it took %v", took)
		}
	})
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		for timeout, want := range map[time.Duration]time.Duration{
			0: cold - margin, time.Minute: cold - margin, time.Second: time.Second - margin, slo / 2: slo/2 - margin,
		} {
			q := newQuery(float64(timeout))
			q.Timeout = timeout
			a, took := t.predict(q)
			t.wantDefault(a, serving.NoReplica)
			if took != want {
				t.Errorf("with a limit of %v it took %v, want %v", timeout, took, want)
			}
		}
		q := newQuery(1)
		q.Version = "1" // asked by name
		if _, took := t.predict(q); took != cold-margin {
			t.Errorf("it took %v", took)
		}
	})
	bubble(t, func(t *rig) { // who comes while others are still held has the time too
		t.serves(patient, m1)
		for i := range firstFew + 1 {
			t.later(newQuery(float64(i)))
		}
		t.replica("a", echoes(time.Second), m1)
		a, took := t.predict(newQuery(7))
		t.wantOutput(a, 7)
		if took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A model without a version, and one that is not there, are nothing to wait for.
func TestNothingToWaitFor(t *testing.T) {
	bubble(t, func(t *rig) {
		patient := newApp("app", "m", "gone")
		patient.ColdStart = serving.Duration(time.Minute)
		t.set(newCatalog([]*serving.App{patient}, current(newModel(m1), "")))
		a, took := t.predict(newQuery(7))
		t.wantDefault(a, serving.NoReplica)
		if took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A version that is registered anew while queries wait for it, and one that is
// removed, leave nobody behind.
func TestTheCatalogChangesWhileQueriesWait(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		one := t.later(newQuery(1))
		t.serves(nil, m1, m2)
		two := t.later(newQuery(2))
		t.serves(nil, m2)
		t.replica("a", echoes(0), m1, m2)
		one.wait()
		two.wait()
		t.wantDefault(one.Prediction, serving.NoReplica)
		t.wantOutput(two.Prediction, 2)
		t.wantQueued(0)
	})
}

// Announcements of other versions, or of this one before it is ready, release nothing.
func TestOnlyAReadyReplicaReleases(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		f := t.replica("a", echoes(0), m1)
		f.announce(rpc.StateLoading)
		t.settle()
		res := t.later(newQuery(7))
		t.replica("b", echoes(0), m2)
		t.wantQueued(1)
		f.announce(rpc.StateReady)
		t.wantQueued(0)
		res.wait()
		t.wantOutput(res.Prediction, 7)
		if res.took != 0 {
			t.Errorf("it took %v", res.took)
		}
	})
}
