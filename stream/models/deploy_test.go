package models

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func TestModelsAreDeployed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.app("tasting")
		w.run(nil)
		first := source("1")
		first.Description, first.Apps, first.Example, first.InputLength = "the first", []string{"tasting"}, "[1, 2]", 2
		w.write(message("a", first))
		w.settle()
		second := source("2")
		second.KeepCurrent = true
		u := Update{UUID: "b", Sequence: 7, Model: second}
		w.write(serving.StreamMessage{Stream: "in", Key: []byte("wine"), Value: u.AppendProtobuf(nil)})
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Deployed})

		cat := w.store.Catalog()
		v := cat.Version(serving.ModelID{Model: "wine", Version: "1"})
		if v == nil || v.Description != "the first" || v.InputType != serving.Doubles || v.InputLength != 2 || v.Container.Bundle == "" || v.Replicas != 1 {
			t.Fatalf("version 1 is %+v", v)
		}
		if w.current("wine") != "1" || !slices.Equal(cat.Apps["tasting"].Models, []string{"wine"}) {
			t.Errorf("version %q is current, and the app asks %v", w.current("wine"), cat.Apps["tasting"].Models)
		}
		made, ok := parseOrigin(cat.Version(serving.ModelID{Model: "wine", Version: "2"}).Labels)
		if !ok || made.job != "models" || made.update != "b" || made.stream != "in" || made.place != "0/1" || made.sequence != 7 || !made.kept {
			t.Errorf("version 2 is of %+v", made)
		}
		out := w.read("out")
		ack, err := ParseAcknowledgement(out[0].Value, 2)
		if err != nil || ack.Bundle != v.Container.Bundle || ack.Model != "wine" || ack.Version != "1" || string(out[0].Key) != "wine" {
			t.Errorf("%s: %+v, %v", out[0].Value, ack, err)
		}
		w.until("count", func() bool { s := w.job.Status(); return s.Updates == 2 && s.InFlight == 0 }) // which follows the commit
		if s := w.job.Status(); s.Updates != 2 || s.Outcomes[Deployed] != 2 || s.Condition != "" || s.InFlight != 0 || s.LastPlace != "in 0/1" {
			t.Errorf("status %+v", s)
		}
	})
}

// TestTheSameAgain changes nothing, and another content under the name of a version is refused.
func TestTheSameAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		w.write(message("a", source("1")), message("b", source("2")))
		w.settle()
		calls, revision := w.calls.Load(), w.store.Catalog().Revision
		w.write(message("a", source("1")), message("c", source("1")))
		w.settle()
		if w.calls.Load() != calls || w.store.Catalog().Revision != revision || w.current("wine") != "2" {
			t.Errorf("%d changes more, revision %d after %d, version %q is current", w.calls.Load()-calls, w.store.Catalog().Revision, revision, w.current("wine"))
		}
		other := source("1")
		other.Data = append(other.Data, '\n')
		w.write(message("d", other), message("a", other), message("e", source("3")))
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Deployed}, outcome{"a", Unchanged}, outcome{"c", Unchanged}, outcome{"e", Deployed},
			outcome{"d", `conflict: version "1" of model "wine" exists with another content, by the update a`}, outcome{"a", "repeated_id: an id twice: another update had the uuid \"a\", at in 0/0"})
	})
}

// TestAnyOrder has the updates of a model come in every order, and twice: in the end all
// versions are there, and the newest is current.
func TestAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, order := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}, {3, 1, 2, 1, 3}} {
			w := newWorld(t)
			w.run(func(c *Config) { c.Batch = 2 })
			for i, n := range order {
				u := Update{UUID: fmt.Sprintf("%d at %d", n, i), Sequence: uint64(n), Model: source(fmt.Sprint(n))}
				w.write(serving.StreamMessage{Stream: "in", Value: u.AppendJSON(nil)})
			}
			w.settle()
			if got := w.current("wine"); got != "3" || len(w.store.Catalog().Models["wine"].Versions) != 3 {
				t.Errorf("in the order %v version %s is current", order, got)
			}
			newest := 0
			for i, o := range w.outcomesOf() {
				n := order[i]
				want := Deployed
				if n < newest {
					want = Outdated
				}
				if i >= 3 {
					want = Unchanged
				}
				if newest = max(newest, n); o.what != want {
					t.Errorf("in the order %v update %s is %s", order, o.id, o.what)
				}
			}
		}
	})
}

// TestRollBack by a person stays, whatever comes again.
func TestRollBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		w.write(message("a", source("1")), message("b", source("2")))
		w.settle()
		if _, err := w.store.Apply(t.Context(), catalog.SetCurrent{ID: serving.ModelID{Model: "wine", Version: "1"}}, 0); err != nil {
			t.Fatal(err)
		}
		w.write(message("c", source("2")))
		w.settle()
		if w.current("wine") != "1" {
			t.Errorf("version %s is current", w.current("wine"))
		}
	})
}

// TestSentAgainWhenTheAppIsMended has the app ask the model, and leaves the version that is
// current by now.
func TestSentAgainWhenTheAppIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		bytes := serving.App{Name: "tasting", InputType: serving.Bytes, SLO: serving.Duration(time.Second)}
		if _, err := w.store.Apply(t.Context(), catalog.PutApp{App: bytes}, 0); err != nil {
			t.Fatal(err)
		}
		w.run(nil)
		m := source("1")
		m.Apps = []string{"tasting"}
		w.write(message("a", m), message("b", source("2")))
		w.settle()
		w.want(outcome{"b", Deployed}, outcome{"a", "refused: the management API refuses the version is registered; that app tasting asks it: "})
		w.app("tasting")
		w.write(message("a", m))
		w.settle()
		w.want(outcome{"b", Deployed}, outcome{"a", Unchanged}, outcome{"a", "refused: "})
		if models := w.store.Catalog().Apps["tasting"].Models; !slices.Equal(models, []string{"wine"}) || w.current("wine") != "2" {
			t.Errorf("the app asks %q, and version %s is current", models, w.current("wine"))
		}
		// The app may come after the update, as for a version that is new.
		if _, err := w.store.Apply(t.Context(), catalog.DeleteApp{Name: "tasting"}, 0); err != nil {
			t.Fatal(err)
		}
		w.write(message("c", m))
		w.settle()
		w.want(outcome{"b", Deployed}, outcome{"a", Unchanged}, outcome{"a", "refused: "}, outcome{"c", `unknown: there is no app "tasting"`})
	})
}

// TestTheHostIsWaitedFor that is to hold a version.
func TestTheHostIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		m := source("1")
		m.HostedBy = "host"
		w.write(message("a", m))
		w.settle()
		w.want(outcome{"a", `unknown: there is no model "host": make it, and send the update again`})
		w.stop()
		w.run(func(c *Config) { c.Patience = patience })
		w.write(message("a", m))
		w.until("trouble", func() bool { return strings.Contains(w.job.Status().Condition, `there is no model "host"`) })
		host := serving.Version{
			ModelID: serving.ModelID{Model: "host", Version: "1"}, Replicas: 1, Host: &serving.HostSpec{MemoryMB: 64}, Container: serving.Container{Command: []string{"host"}},
		}
		if _, err := w.store.Apply(t.Context(), catalog.PutVersion{Version: host}, 0); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"a", "unknown: "})
	})
}
