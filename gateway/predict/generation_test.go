package predict

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// answers gives one number to everything.
func answers(x float64, after time.Duration) behaviour {
	return func(arrival) (rpc.Answer, time.Duration) { return number(x), after }
}

// defined is a catalog whose only version is of a generation.
func defined(generation string, change ...func(*serving.Version)) *serving.Catalog {
	m := newModel(m1)
	m.Versions["1"].Generation = generation
	for _, c := range change {
		c(m.Versions["1"])
	}
	return newCatalog(apps("app"), m)
}

// What one definition of a version has answered is not what another one would.
func TestAnswersBelongToADefinition(t *testing.T) {
	bubble(t, func(t *rig) {
		t.set(defined("a"))
		t.runs("old", answers(6, 0), definitions("a", m1)...)
		a, _ := t.predict(newQuery(2))
		t.wantOutput(a, 6)

		t.set(defined("b"))
		a, _ = t.predict(newQuery(2))
		t.wantDefault(a, serving.NoReplica) // the old replica is still there, and so is its answer

		res := t.later(newQuery(2))
		t.runs("new", answers(60, 0), definitions("b", m1)...)
		res.wait()
		t.wantOutput(res.Prediction, 60)
		a, _ = t.predict(newQuery(2))
		t.wantOutput(a, 60)

		t.set(defined("a")) // the first definition is in force again
		a, _ = t.predict(newQuery(2))
		t.wantOutput(a, 6)
	})
}

// Queries wait for the replicas of a version that is redefined, whatever their objective is, and not for ever.
func TestQueriesWaitForAVersionThatIsReplaced(t *testing.T) {
	const starts = 3 * time.Second // which is longer than the objective
	staged := newApp("app")
	staged.Stages = serving.Pipeline{{Name: "one", Model: "m"}}
	for name, app := range map[string]*serving.App{"a model": newApp("app", "m"), "a stage": staged} {
		bubble(t, func(t *rig) {
			with := func(generation string) *serving.Catalog {
				m := newModel(m1)
				m.Versions["1"].Generation = generation
				return newCatalog([]*serving.App{app}, m)
			}
			t.set(with("a"))
			a, _ := t.predict(newQuery(1))
			t.wantDefault(a, serving.NoReplica) // none has been there yet
			t.runs("old", answers(6, 0), definitions("a", m1)...)
			a, _ = t.predict(newQuery(2))
			t.wantOutput(a, 6)

			t.set(with("b"))
			time.Sleep(time.Second)
			first, hasty := t.later(newQuery(2)), newQuery(3)
			hasty.Timeout = slo / 2
			if a, took := t.predict(hasty); took > slo/2 || !a.Default {
				t.Errorf("%s: a client with less time waited %v", name, took)
			}
			t.set(with("c")) // once more
			time.Sleep(starts)
			second := t.later(newQuery(4))
			t.runs("new", answers(60, 0), definitions("c", m1)...)
			first.wait()
			second.wait()
			t.wantOutput(first.Prediction, 60)
			t.wantOutput(second.Prediction, 60)
			if first.took < starts {
				t.Errorf("%s: it took %v", name, first.took)
			}

			t.set(with("d")) // whose replicas do not come
			res := t.later(newQuery(5))
			time.Sleep(31 * time.Second)
			res.wait()
			t.wantDefault(res.Prediction, serving.NoReplica)
			if _, took := t.predict(newQuery(6)); res.took < 29*time.Second || took > slo {
				t.Errorf("%s: a query waited %v, and one that came later %v", name, res.took, took)
			}
		})
	}
}

// An answer that was on its way when the version was redefined is for those who asked
// before.
func TestAnAnswerOnItsWayIsOfTheOldDefinition(t *testing.T) {
	bubble(t, func(t *rig) {
		t.set(defined("a"))
		t.runs("old", answers(6, slo/2), definitions("a", m1)...)
		before := t.later(newQuery(2))
		t.set(defined("b"))
		t.runs("new", answers(60, 0), definitions("b", m1)...)
		after, _ := t.predict(newQuery(2))
		t.wantOutput(after, 60)
		before.wait()
		t.wantOutput(before.Prediction, 6)
		after, _ = t.predict(newQuery(2))
		t.wantOutput(after, 60)
	})
}

// A query that waits for a replica asks what the version is by then.
func TestAHeldQueryAsksTheNewDefinition(t *testing.T) {
	for name, noCache := range map[string]bool{"through the cache": false, "around it": true} {
		bubble(t, func(t *rig) {
			t.set(defined("a"))
			q := newQuery(2)
			q.NoCache = noCache
			first, second := t.later(q), t.later(newQuery(2))
			t.wantQueued(2 - btoi(!noCache))
			t.set(defined("b"))
			t.runs("new", answers(60, 0), definitions("b", m1)...)
			first.wait()
			second.wait()
			t.wantOutput(first.Prediction, 60)
			t.wantOutput(second.Prediction, 60)
			t.wantQueued(0)
			if first.took >= slo/2 {
				t.Errorf("%s it took %v", name, first.took)
			}
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The replica may be stopped before it has taken the query.
func TestAQueryOfAStoppedReplicaAsksTheNewDefinition(t *testing.T) {
	bubble(t, func(t *rig) {
		t.set(defined("a"))
		old := t.runs("old", silent, definitions("a", m1)...)
		res := t.later(newQuery(2))
		t.set(defined("b"))
		t.runs("new", answers(60, 0), definitions("b", m1)...)
		t.stop(old)
		res.wait()
		t.wantOutput(res.Prediction, 60)
	})
}

// What waits for a version that is deleted, or takes something else by now, does not wait on.
func TestAHeldQueryOfAVersionThatIsGone(t *testing.T) {
	bubble(t, func(t *rig) {
		t.set(defined("a"))
		res := t.later(newQuery(2))
		t.set(newCatalog([]*serving.App{newApp("app")}))
		res.wait()
		t.wantDefault(res.Prediction, serving.NoReplica)
		if res.took != 0 {
			t.Errorf("it waited for %v", res.took)
		}
	})
	bubble(t, func(t *rig) {
		t.set(defined("a"))
		res := t.later(newQuery(2))
		t.set(defined("b", func(v *serving.Version) { v.InputLength = 9 }))
		res.wait()
		t.wantDefault(res.Prediction, serving.BadInput)
	})
}

// A version that a host holds is what the host makes of it.
func TestAnswersOfAHostedVersionBelongToTheHost(t *testing.T) {
	small2 := id("small", "2")
	catalog := func(serves string) *serving.Catalog {
		cat := hosted(newModel(ann))
		m := cat.Models["small"]
		next := *m.Versions["1"]
		next.ModelID, next.Generation = small2, "h2"
		m.Versions["1"].Generation = "h1"
		m.Versions["2"], m.Current, m.Serving = &next, "2", serves
		return cat
	}
	bubble(t, func(t *rig) {
		t.wakes(nil)
		t.set(catalog("1"))
		first := t.host("one", answers(1, 0), holds(0))
		first.versions[0].Generation = "h1"
		first.announceAll()
		t.settle()
		a, _ := t.ask("ann", 2)
		t.wantOutput(a, 1)

		second := t.host("two", answers(2, 0), holds(0))
		second.versions[0] = serving.Definition{ModelID: small2, Generation: "h2"}
		second.announceAll()
		t.settle()
		a, _ = t.ask("ann", 2)
		t.wantOutput(a, 1) // the first host serves

		t.stop(first) // and now it cannot
		a, _ = t.ask("ann", 2)
		t.wantOutput(a, 2)

		t.set(catalog("2"))
		a, _ = t.ask("ann", 3)
		t.wantOutput(a, 2)
		a, _ = t.ask("ann", 2)
		t.wantOutput(a, 2)
	})
}
