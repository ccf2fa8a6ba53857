package models

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// set is a small model with settings.
func set(version, settings string) *Model {
	m := source(version)
	m.Settings = json.RawMessage(settings)
	return m
}

// TestAReplacedModelKeepsWhatItHas: replicas, scale, batch, resources, env, labels and all else, as they
// are when it is replaced, as far as the message does not say otherwise.
func TestAReplacedModelKeepsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		first := set("1", `{"replicas": 3, "scale": {"min": 2, "max": 12, "metric": "concurrency", "target": 4}, "batch": {"strategy": "fixed", "max_size": 16, "delay_micros": 2000},
			"resources": {"cpu": 500, "memory_mb": 256}, "env": {"DEBUG": "1", "THREADS": "2"}, "labels": ["team=wine"], "session": true}`)
		first.Description, first.InputLength = "the first", 4
		w.write(message("a", first))
		w.settle()
		w.apply(catalog.SetScale{ID: serving.ModelID{Model: "wine", Version: "1"}, Replicas: 8, Scale: w.version("1").Scale}) // by an operator
		second := source("2")
		second.InputType = "" // and its length
		w.write(message("b", second))
		w.settle()
		third := Update{UUID: "c", Model: set("3", `{"scale": {"max": 20}, "env": {"THREADS": null, "DEBUG": "0"}, "labels": ["team=beer"], "batch": null}`)}
		w.write(serving.StreamMessage{Stream: "in", Value: third.AppendProtobuf(nil)})
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Deployed}, outcome{"c", Deployed})

		was, is := w.version("1"), w.version("2")
		if is.Replicas != 8 || *is.Scale != *was.Scale || is.Batch != was.Batch || is.Resources != was.Resources || !maps.Equal(is.Env, was.Env) || !is.Session ||
			is.InputType != serving.Doubles || is.InputLength != 4 || !slices.Contains(is.Labels, "team=wine") {
			t.Errorf("version 2 is %+v\nand version 1 %+v", is, was)
		}
		if is.Batch.MaxSize != 16 || is.Resources.CPU != 500 || is.Description != "" || is.Container.Bundle == was.Container.Bundle {
			t.Errorf("version 2 is %+v", is)
		}
		if made, ok := parseOrigin(is.Labels); !ok || made.update != "b" || len(is.Labels) != 1+len(made.labels()) {
			t.Errorf("version 2 has the labels %q", is.Labels)
		}
		last := w.version("3")
		want := serving.ScaleSpec{Min: 2, Max: 20, Metric: "concurrency", Target: 4}
		if last.Replicas != 8 || *last.Scale != want || !maps.Equal(last.Env, map[string]string{"DEBUG": "0"}) || last.Batch.MaxSize != 0 ||
			!slices.Contains(last.Labels, "team=beer") || slices.Contains(last.Labels, "team=wine") || last.InputLength != 0 {
			t.Errorf("version 3 is %+v", last)
		}
	})
}

// TestWhatIsNotTaken: settings of the version that is replaced may be about another kind of version.
func TestWhatIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		host := serving.Version{
			ModelID: serving.ModelID{Model: "host", Version: "1"}, Replicas: 1, Host: &serving.HostSpec{MemoryMB: 64}, Container: serving.Container{Command: []string{"host"}},
		}
		w.apply(catalog.PutVersion{Version: host})
		command := serving.Version{
			ModelID: serving.ModelID{Model: "wine", Version: "0"}, InputType: serving.Doubles, Replicas: 2,
			Container: serving.Container{Command: []string{"serve"}, Env: map[string]string{"A": "1"}, Protocol: "v1", Watch: []string{"serve"}},
		}
		w.apply(catalog.PutVersion{Version: command})
		hosted := source("2")
		hosted.HostedBy = "host"
		w.write(message("a", source("1")), message("b", hosted), message("c", source("3")), message("d", set("4", `{"hosted_by": null, "replicas": 5}`)),
			message("e", set("5", `{"stages": [{"name": "clean", "code": "wine:clean"}, {"name": "score", "code": "wine:predict", "workers": 2}]}`)), message("f", source("6")))
		w.settle()
		if got := w.outcomesOf(); len(got) != 6 {
			t.Fatalf("%q", got)
		}
		if v := w.version("1"); v.Replicas != 2 || v.Env["A"] != "1" || len(v.Command)+len(v.Watch) > 0 || v.Protocol != "" {
			t.Errorf("version 1 is %+v", v)
		}
		for _, name := range []string{"2", "3"} {
			if v := w.version(name); v.HostedBy != "host" || len(v.Env) > 0 {
				t.Errorf("version %s is %+v", name, v)
			}
		}
		if v := w.version("4"); v.HostedBy != "" || v.Replicas != 5 {
			t.Errorf("version 4 is %+v", v)
		}
		for _, name := range []string{"5", "6"} {
			if v := w.version(name); len(v.Stages) != 2 || v.Stages[1].Workers != 2 || v.Stages[0].Code != "wine:clean" {
				t.Errorf("version %s is %+v", name, v)
			}
		}
	})
}

// TestSettingsMakeAVersion what it is: others under its name are refused, and the same are not.
func TestSettingsMakeAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		w.write(message("a", set("1", `{"replicas": 2, "env": {"A": "1"}}`)), message("b", set("1", `{"env": {"A": "1"}, "replicas": 2.0}`)), message("c", set("1", `{"replicas": 3}`)))
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Unchanged}, outcome{"c", "conflict: "})
	})
}

// TestPolicies have parameters set, in the order of the updates.
func TestPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(func(c *Config) { c.Patience = patience })
		change := func(id string, sequence int, parameters string) serving.StreamMessage {
			return text(`{"uuid": %q, "sequence": %d, "policy": {"app": "tasting", "parameters": %s}}`, id, sequence, parameters)
		}
		w.write(change("a", 0, `{"kind": "vote", "agreement": 0.6}`)) // the app comes later
		w.until("trouble", func() bool { return w.job.Status().Condition != "" })
		w.app("tasting")
		w.settle()
		w.write(change("b", 7, `{"within_micros": 50000}`), change("c", 6, `{"within_micros": 70000}`), change("d", 8, `{"within_micros": 50000}`))
		w.settle()
		w.want(outcome{"a", Configured}, outcome{"b", Configured}, outcome{"c", Outdated}, outcome{"d", Unchanged})
		app := w.store.Catalog().Apps["tasting"]
		if p := app.Policy; p.Kind != "vote" || p.Agreement != 0.6 || p.Within() != 50*time.Millisecond || app.DefaultOutput != "-1" || app.SLO.Std() != time.Second {
			t.Errorf("the app is %+v", app)
		}
		u := Update{UUID: "e", Policy: &PolicyChange{App: "tasting", Parameters: `{"kind": "guaranteed", "within_micros": 9000}`}}
		w.write(serving.StreamMessage{Stream: "in", Value: u.AppendProtobuf(nil)}, change("f", 0, `{"within_micros": null}`))
		w.settle()
		if p := w.store.Catalog().Apps["tasting"].Policy; p.Kind != "guaranteed" || p.Agreement != 0 || p.Within() != 0 {
			t.Errorf("the policy is %+v", p)
		}
	})
}
