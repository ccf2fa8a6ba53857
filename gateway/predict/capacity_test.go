package predict

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

func (r *rig) wantCapacity(app string, replicas int, wait time.Duration) {
	r.Helper()
	if n, w := r.p.Capacity(app); n != replicas || w != wait {
		r.Errorf("%s has %d replicas where a query waits %v, want %d and %v", app, n, w, replicas, wait)
	}
}

// busy adds a replica that says with each answer that a query would wait so long.
func (r *rig) busy(name string, wait time.Duration, versions ...serving.ModelID) *fake {
	r.Helper()
	f := r.replica(name, echoes(0), versions...)
	f.wait = wait
	return f
}

func TestCapacityWithoutReplicas(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wantCapacity("app", 0, 0) // before there is a catalog
		t.serves(nil, m1)
		t.wantCapacity("app", 0, 0)
		t.wantCapacity("other", 0, 0)
		t.set(newCatalog(apps("app")))
		t.wantCapacity("app", 0, 0) // its model is not registered
	})
}

// What a replica says is trusted for a second.
func TestCapacityOfOneBusyReplica(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.busy("a", 30*time.Millisecond, m1)
		t.serves(nil, m1)
		t.wantCapacity("app", 1, 0) // it has not said anything yet
		t.predict(newQuery(1))
		t.wantCapacity("app", 1, 30*time.Millisecond)
		time.Sleep(900 * time.Millisecond)
		t.wantCapacity("app", 1, 30*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		t.wantCapacity("app", 1, 0)
		t.stop(f)
		t.wantCapacity("app", 0, 0)
	})
}

// A query goes where it waits least.
func TestCapacityOfSeveralReplicas(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		slow := t.busy("a", 30*time.Millisecond, m1)
		t.predict(newQuery(1))
		t.busy("b", 20*time.Millisecond, m1)
		t.wantCapacity("app", 2, 0) // the second says nothing yet
		for x := 2.0; x < 50; x++ { // so that each is asked
			t.predict(newQuery(x))
		}
		t.wantCapacity("app", 2, 20*time.Millisecond)
		t.stop(slow)
		t.wantCapacity("app", 1, 20*time.Millisecond)
	})
}

// Replicas of what the version was before do not answer for what it is.
func TestCapacityIsOfTheDefinition(t *testing.T) {
	bubble(t, func(t *rig) {
		t.set(defined("a"))
		t.runs("old", echoes(0), definitions("a", m1)...)
		t.wantCapacity("app", 1, 0)
		t.set(defined("b"))
		t.wantCapacity("app", 0, 0)
	})
}

// Of models that a policy chooses from the best one counts.
func TestCapacityOfModelsToChooseFrom(t *testing.T) {
	bubble(t, func(t *rig) {
		t.links(func(a *serving.App) { a.Policy = serving.PolicySpec{Kind: serving.PolicyMean} }, a1, b1)
		t.wantCapacity("app", 0, 0)
		t.busy("b", 30*time.Millisecond, b1)
		t.predict(newQuery(1))
		t.wantCapacity("app", 1, 30*time.Millisecond) // the one without a replica does not count
		t.busy("a1", 10*time.Millisecond, a1)
		t.busy("a2", 10*time.Millisecond, a1)
		for x := 2.0; x < 50; x++ {
			t.predict(newQuery(x))
		}
		t.wantCapacity("app", 2, 10*time.Millisecond)
	})
}

// Of stages, which are all asked, the worst one does.
func TestCapacityOfStages(t *testing.T) {
	bubble(t, func(t *rig) {
		t.busy("a1", 10*time.Millisecond, a1)
		t.busy("a2", 10*time.Millisecond, a1)
		t.staged(nil, stage("first", "a"), stage("second", "nobody"))
		t.wantCapacity("app", 0, 0)
		t.staged(nil, stage("first", "a"), stage("second", "b"))
		t.wantCapacity("app", 0, 0)
		t.busy("b", 40*time.Millisecond, b1)
		for x := 1.0; x < 50; x++ {
			t.predict(newQuery(x))
		}
		t.wantCapacity("app", 1, 40*time.Millisecond)
	})
}

// A version that a host holds has a replica as soon as it has been loaded once, also while
// it is not: asking loads it again.
func TestCapacityOfAHostedVersion(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wakes(nil)
		t.set(hosted(newModel(ann)))
		t.wantCapacity("ann", 0, 0)
		f := t.host("one", echoes(0), holds(10*time.Millisecond))
		f.wait = 30 * time.Millisecond
		t.wantCapacity("ann", 0, 0) // nobody knows yet whether it can be loaded
		t.ask("ann", 1)
		t.wantCapacity("ann", 1, 30*time.Millisecond)
		f.unload(ann)
		t.settle()
		t.wantCapacity("ann", 1, 0)
		f.hold = cannot("no room")
		t.ask("ann", 2)
		t.wantCapacity("ann", 0, 0)
		t.stop(f)
		t.wantCapacity("ann", 0, 0)
	})
}
