package predict

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

var m2 = id("m", "2")

// asked is which version answers now.
func (r *rig) asked() serving.ModelID {
	r.Helper()
	q := newQuery(7)
	q.NoCache = true
	a, _ := r.predict(q)
	if a.Default {
		r.wantDefault(a, serving.NoReplica)
		return serving.ModelID{}
	}
	return a.Model
}

func (r *rig) wantAsked(when string, want serving.ModelID) {
	r.Helper()
	if got := r.asked(); got != want {
		r.Errorf("%s: %v answers, want %v", when, got, want)
	}
}

func TestTheServingVersion(t *testing.T) {
	nobody := serving.ModelID{}
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		t.wantAsked("no replica at all", nobody)
		one := t.replica("one", echoes(0), m1)
		t.wantAsked("the only version", m1)
		t.serves(nil, m1, m2)
		t.wantAsked("the current one is not ready", m1)
		two := t.replica("two", echoes(0), m2)
		t.wantAsked("the current one is ready", m2)
		t.stop(two)
		t.wantAsked("its replica is gone, and the one that served before is ready", m1)
		two = t.replica("two", echoes(0), m2)
		t.wantAsked("its replica is back", m2)
		t.set(newCatalog(apps("app"), current(newModel(m1, m2), "1")))
		t.wantAsked("rolled back", m1)
		t.stop(one)
		t.wantAsked("rolled back to one that went away, and the other is ready", m2)
		t.set(newCatalog(apps("app"), newModel(m1, m2)))
		t.wantAsked("forward again", m2)
		t.stop(two)
		t.wantAsked("nobody is left", nobody)
	})
	bubble(t, func(t *rig) { // a version that never was current does not serve
		t.replica("one", echoes(0), m1)
		t.serves(nil, m1, m2)
		t.wantAsked("never served", nobody)
	})
	bubble(t, func(t *rig) {
		t.replica("one", echoes(0), m1)
		t.serves(nil, m1)
		t.wantAsked("before", m1)
		t.serves(nil, m2)
		t.wantAsked("the served version was deleted, and its replica lives", nobody)
		t.serves(nil, m1, m2)
		t.wantAsked("it was registered again", m1)
	})
	bubble(t, func(t *rig) {
		t.replica("one", echoes(0), m1)
		t.set(newCatalog(apps("app"), current(newModel(m1), "")))
		t.wantAsked("no current version", nobody)
		t.set(newCatalog(apps("app"), newModel(m1)))
		t.wantAsked("it became current", m1)
		t.set(newCatalog(apps("app"), current(newModel(m1), "")))
		t.wantAsked("the last served goes on without a current one", m1)
		t.set(newCatalog(apps("app"), current(newModel(m1), "unknown")))
		t.wantAsked("a current one that does not exist", m1)
	})
	bubble(t, func(t *rig) {
		t.replica("one", echoes(0), m1)
		t.serves(nil, m1)
		t.wantAsked("before", m1)
		t.set(newCatalog(apps("app")))
		t.wantAsked("the model was deleted", nobody)
		if n := len(t.p.served); n != 0 {
			t.Errorf("%d models are remembered", n)
		}
		t.serves(nil, m1, m2)
		t.wantAsked("a model of the same name is a new one", nobody)
	})
}

func current(m *serving.Model, version string) *serving.Model {
	m.Current = version
	return m
}

// A gateway that starts afresh goes by what the catalog says has served.
func TestWhatTheCatalogSaysServes(t *testing.T) {
	nobody := serving.ModelID{}
	m3 := id("m", "3")
	served := func(m *serving.Model, version string) *serving.Model {
		m.Serving = version
		return m
	}
	bubble(t, func(t *rig) {
		t.replica("one", echoes(0), m1)
		t.set(newCatalog(apps("app"), served(newModel(m1, m2), "1")))
		t.wantAsked("the current one is not ready", m1)
		two := t.replica("two", echoes(0), m2)
		t.wantAsked("it is", m2)
		t.stop(two)
		t.wantAsked("it is not any more", m1)
	})
	bubble(t, func(t *rig) { // the current one served, and nobody knows what did before
		t.replica("one", echoes(0), m1)
		t.set(newCatalog(apps("app"), served(newModel(m1, m2), "2")))
		t.wantAsked("never served", nobody)
	})
	bubble(t, func(t *rig) { // of several, the one that the catalog has seen last
		t.replica("one", echoes(0), m1)
		two := t.replica("two", echoes(0), m2)
		t.serves(nil, m1)
		t.wantAsked("before", m1)
		t.set(newCatalog(apps("app"), served(newModel(m1, m2, m3), "2")))
		t.wantAsked("another gateway has asked the second", m2)
		t.stop(two)
		t.wantAsked("which is gone", m1)
		t.set(newCatalog(apps("app"), served(newModel(m1, m2, m3), "gone")))
		t.wantAsked("a version that is not registered", m1)
	})
	bubble(t, func(t *rig) { // old news change nothing
		t.replica("one", echoes(0), m1)
		t.replica("two", echoes(0), m2)
		t.set(newCatalog(apps("app"), served(newModel(m1), "1")))
		t.set(newCatalog(apps("app"), served(newModel(m1, m2), "1")))
		t.wantAsked("the second", m2)
		t.set(newCatalog(apps("app"), served(newModel(m1, m2, m3), "1")))
		t.wantAsked("the third is not ready", m2)
	})
}

// A current version that has served and loses all its replicas is stood in for by the
// one before it, also at a gateway that started afterwards, and the answer says so.
func TestTheVersionBeforeTakesOver(t *testing.T) {
	rolledOut := func(m *serving.Model) *serving.Model { // as the catalog has it when the rollout is done
		m.Serving, m.Previous = "2", "1"
		return m
	}
	ask := func(r *rig) serving.Prediction {
		q := newQuery(7)
		q.NoCache = true
		a, _ := r.predict(q)
		return a
	}
	bubble(t, func(t *rig) {
		t.set(newCatalog(apps("app"), rolledOut(newModel(m1, m2))))
		t.replica("one", echoes(0), m1)
		if a := ask(t); a.Model != m1 || !slices.Equal(a.Failover, []serving.ModelID{m2}) || !t.p.FailedOver()[m2] {
			t.Errorf("a gateway that starts after the loss: %v answers instead of %v, %v", a.Model, a.Failover, t.p.FailedOver())
		}
		two := t.replica("two", echoes(0), m2)
		if a := ask(t); a.Model != m2 || a.Failover != nil || t.p.FailedOver()[m2] {
			t.Errorf("a replica of the current one: %v answers instead of %v, %v", a.Model, a.Failover, t.p.FailedOver())
		}
		t.stop(two)
		if a := ask(t); a.Model != m1 || !slices.Equal(a.Failover, []serving.ModelID{m2}) {
			t.Errorf("it is gone again: %v answers instead of %v", a.Model, a.Failover)
		}
		q := newQuery(7)
		q.Version = "1"
		if a, _ := t.predict(q); a.Model != m1 || a.Failover != nil {
			t.Errorf("the version that the query names: %v answers instead of %v", a.Model, a.Failover)
		}
	})
	bubble(t, func(t *rig) { // a version that is being rolled out has not lost anything
		t.serves(nil, m1)
		t.replica("one", echoes(0), m1)
		ask(t)
		t.serves(nil, m1, m2)
		if a := ask(t); a.Model != m1 || a.Failover != nil || t.p.FailedOver()[m2] {
			t.Errorf("a rollout: %v answers instead of %v, %v", a.Model, a.Failover, t.p.FailedOver())
		}
	})
}

// No query is held for a version while one that served before can answer.
func TestAnOlderVersionAnswersWhileTheCurrentIsAway(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("one", echoes(0), m1)
		t.serves(nil, m1)
		t.wantAsked("before", m1)
		t.serves(nil, m1, m2)
		two := t.replica("two", echoes(0), m2)
		t.wantAsked("after", m2)
		t.stop(two)
		a, took := t.predict(newQuery(1))
		t.wantOutput(a, 1)
		if took != 0 || a.Model != m1 {
			t.Errorf("%v answers after %v", a.Model, took)
		}
		t.wantQueued(0)
	})
}

func TestServedRemembersTheLatest(t *testing.T) {
	s := newServed()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				s.note(strconv.Itoa(i % (2 * maxServed)))
			}
		})
	}
	all.Wait()
	for i := range 3 * maxServed {
		s.note(strconv.Itoa(i % (maxServed + 2)))
		s.note("0")
		s.note("1")
		s.note("0")
	}
	got := *s.versions.Load()
	sorted := slices.Clone(got)
	slices.Sort(sorted)
	if len(got) != maxServed || len(slices.Compact(sorted)) != maxServed || got[0] != "0" || got[1] != "1" {
		t.Errorf("it remembers %v", got)
	}
}

// All apps of a model go by what it served last, also an app that came later.
func TestWhatServedIsTheModelsNotTheApps(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("one", echoes(0), m1)
		t.set(newCatalog(apps("other"), newModel(m1)))
		q := newQuery(1)
		q.App = "other"
		t.predict(q)
		t.set(newCatalog(apps("app"), newModel(m1, m2)))
		t.wantAsked("an app that never asked before", m1)
	})
}

// A version of another input type than the app's can be left from before the model
// was linked. It must not be shown the app's inputs.
func TestAVersionOfAnotherTypeIsNotAsked(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("one", echoes(0), m1, m2)
		bytes := newModel(m1)
		bytes.Versions["1"].InputType = serving.Bytes
		old := newApp("old", "m")
		old.InputType = serving.Bytes
		t.set(newCatalog([]*serving.App{old}, bytes))
		a, err := one(context.Background(), t.p, &serving.Query{App: "old", Input: serving.Input{Type: serving.Bytes, Data: make([]byte, 8)}, Received: newQuery().Received})
		if err != nil || a.Model != m1 {
			t.Fatalf("got %+v, %v", a, err)
		}
		f.kill() // of version 2 there is no replica now, and 1 served last
		t.settle()
		t.replica("again", echoes(0), m1)
		mixed := newModel(m1, m2)
		mixed.Versions["1"].InputType = serving.Bytes
		t.set(newCatalog(apps("app"), mixed))
		t.wantAsked("only the other type is ready", serving.ModelID{})
		q := newQuery(7)
		q.Version = "1"
		t.wantRefused(q, "Requested version: 1 of model: m takes bytes, and application app takes doubles")
	})
}

func TestPinnedVersions(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", echoes(0), m1, m2)
		t.serves(nil, m1, m2)
		for version, want := range map[string]serving.ModelID{"": m2, "1": m1, "2": m2} {
			q := newQuery(7)
			q.Version, q.NoCache = version, true
			a, _ := t.predict(q)
			t.wantOutput(a, 7)
			if got := f.questions()[len(f.questions())-1].version; got != want || a.Model != want {
				t.Errorf("version %q: %v was asked, and %v answered", version, got, a.Model)
			}
		}
		q := newQuery(7)
		q.Version = "3"
		t.wantRefused(q, "Requested version: 3 does not exist for model: m")
		t.wantAsked("a pinned version changes nothing for others", m2)
	})
	bubble(t, func(t *rig) { // a pinned version is asked or nobody is
		t.replica("a", echoes(0), m2)
		t.serves(nil, m1, m2)
		q := newQuery(7)
		q.Version = "1"
		a, _ := t.predict(q)
		t.wantDefault(a, serving.NoReplica)
	})
	bubble(t, func(t *rig) {
		t.set(newCatalog([]*serving.App{newApp("app", "m", "n")}, newModel(m1), newModel(id("n", "1"))))
		q := newQuery(7)
		q.Version = "1"
		t.wantRefused(q, "Too many models linked to application app")
	})
	bubble(t, func(t *rig) { // Clipper crashed here
		t.set(newCatalog([]*serving.App{newApp("app")}))
		q := newQuery(7)
		q.Version = "1"
		a, took := t.predict(q)
		t.wantDefault(a, serving.NoReplica)
		if took != 0 || a.Explanation != "No connected models found for query" {
			t.Errorf("after %v: %q", took, a.Explanation)
		}
	})
}

func (r *rig) wantRefused(q *serving.Query, cause string) {
	r.Helper()
	a, err := one(context.Background(), r.p, q)
	if e, ok := errors.AsType[*serving.QueryError](err); !ok || e.Cause != cause {
		r.Errorf("got %+v, %v, want the error %q", a, err, cause)
	}
}

func TestQueriesThatCannotBe(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", echoes(0), m1, m2)
		two := newModel(m1, m2)
		two.Versions["1"].InputLength = 2
		t.set(newCatalog(apps("app"), two))
		if _, err := one(context.Background(), t.p, &serving.Query{App: "nosuch", Input: doubles(1)}); !errors.Is(err, serving.ErrUnknownApp) {
			t.Errorf("an unknown app: %v", err)
		}
		for typ := serving.Bytes; typ <= serving.Strings; typ++ {
			if q := newQuery(1); typ != serving.Doubles {
				q.Input.Type = typ
				t.wantRefused(q, "Input of type "+typ.String()+", and application app takes doubles")
			}
		}
		for n := range 4 {
			q := newQuery(make([]float64, n)...)
			q.Version = "1"
			if n == 2 {
				a, _ := t.predict(q)
				t.wantOutput(a, 0)
				continue
			}
			t.wantRefused(q, "Input has length "+string(rune('0'+n))+", and model m takes 2")
		}
		t.predict(newQuery(1, 2, 3, 4, 5)) // version 2 takes any length
		if n := len(f.questions()); n != 2 {
			t.Errorf("%d questions were asked", n)
		}
		if n := t.metric(`topsail_gateway_query_seconds_count{app="app"}`); n != 2 {
			t.Errorf("%v queries were counted", n)
		}
	})
}

// Where several models are linked, the first that has a serving version is asked:
// that is the policy "single".
func TestTheFirstLinkedModelIsAsked(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", echoes(0), m1, id("n", "1"))
		for _, links := range [][]string{{"m", "n"}, {"n", "m"}, {"gone", "m"}, {"m"}} {
			t.set(newCatalog([]*serving.App{newApp("app", links...)}, newModel(m1), newModel(id("n", "1"))))
			want := links[0]
			if want == "gone" {
				want = "m"
			}
			t.wantAsked("links "+links[0], id(want, "1"))
		}
	})
}
