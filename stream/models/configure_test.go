package models

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestEnsembles makes and changes apps, in the order of the updates.
func TestEnsembles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		ensemble := func(id string, sequence, slo uint64, policy string) serving.StreamMessage {
			return text(`{"uuid": %q, "sequence": %d, "ensemble": {"name": "tasting", "input_type": "doubles", "models": ["wine", "other"],
				"policy": %s, "latency_slo_micros": %d, "default_output": -1, "output_type": "label"}}`, id, sequence, policy, slo)
		}
		other := source("1")
		other.Name = "other"
		// In one batch with the models that it asks, and before them; one of these is to be asked
		// by another app, which comes last.
		other.Apps = []string{"last"}
		w.write(ensemble("e1", 1, 20000, `"vote"`), message("a", source("1")), message("b", other),
			text(`{"uuid": "e0", "ensemble": {"name": "last", "input_type": "doubles", "models": [], "latency_slo_micros": 1000}}`))
		w.settle()
		app := w.store.Catalog().Apps["tasting"]
		if app == nil || app.SLO.Std() != 20*time.Millisecond || app.Policy.Kind != "vote" || app.DefaultOutput != "-1" || !slices.Equal(app.Models, []string{"wine", "other"}) {
			t.Fatalf("the app is %+v", app)
		}
		changed := *app
		changed.Weight = 3 // by an operator
		if _, err := w.store.Apply(t.Context(), catalog.PutApp{App: changed}, 0); err != nil {
			t.Fatal(err)
		}
		w.write(ensemble("e3", 3, 30000, `{"kind": "exp4", "eta": 0.5}`), ensemble("e2", 2, 99000, `"vote"`), ensemble("e4", 4, 30000, `{"kind": "exp4", "eta": 0.5}`))
		w.settle()
		w.want(outcome{"e1", Configured}, outcome{"a", Deployed}, outcome{"b", Deployed}, outcome{"e0", Configured}, outcome{"e3", Configured}, outcome{"e2", Outdated}, outcome{"e4", Unchanged})
		if app := w.store.Catalog().Apps["tasting"]; app.SLO.Std() != 30*time.Millisecond || app.Policy.Kind != "exp4" || app.Weight != 3 {
			t.Errorf("the app is %+v", app)
		}
	})
}

// limit is an update of an app with a time limit in microseconds.
func limit(id string, sequence, slo int) serving.StreamMessage {
	return text(`{"uuid": %q, "sequence": %d, "ensemble": {"name": "limited", "input_type": "doubles", "models": [], "latency_slo_micros": %d}}`, id, sequence, slo)
}

// TestOlderAfterTheSame is outdated, also where the newest said what was there already.
func TestOlderAfterTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		w.write(limit("e1", 1, 1000), limit("e3", 3, 1000))
		w.settle()
		w.stop()
		w.mu.Lock()
		w.done, w.polled = 1, 1 // what became of e3 is forgotten
		w.streams["out"] = w.streams["out"][:1]
		w.mu.Unlock()
		w.run(nil)
		w.write(limit("e2", 2, 2000))
		w.settle()
		w.want(outcome{"e1", Configured}, outcome{"e3", Unchanged}, outcome{"e2", Outdated})
		if app := w.store.Catalog().Apps["limited"]; app.SLO.Std() != time.Millisecond {
			t.Errorf("the app is %+v", app)
		}
	})
}

// TestStreamMadeAnew has the places of the old one, and other updates there.
func TestStreamMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		w.write(limit("e1", 0, 1000))
		w.settle()
		w.stop()
		w.broker = newBroker()
		w.run(nil)
		w.write(limit("e2", 0, 2000))
		w.settle()
		w.want(outcome{"e2", Configured})
		if app := w.store.Catalog().Apps["limited"]; app.SLO.Std() != 2*time.Millisecond {
			t.Errorf("the app is %+v", app)
		}
	})
}

// TestLabelsOfOperators stay when an app changes.
func TestLabelsOfOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		w.write(limit("e1", 0, 1000))
		w.settle()
		app := *w.store.Catalog().Apps["limited"]
		app.Labels = append([]string{"team=wine"}, app.Labels...)
		if _, err := w.store.Apply(t.Context(), catalog.PutApp{App: app}, 0); err != nil {
			t.Fatal(err)
		}
		w.write(limit("e2", 0, 2000))
		w.settle()
		labels := w.store.Catalog().Apps["limited"].Labels
		if made, ok := parseOrigin(labels); !ok || made.update != "e2" || labels[0] != "team=wine" || len(labels) != 1+len(made.labels()) {
			t.Errorf("the labels are %q", labels)
		}
	})
}
