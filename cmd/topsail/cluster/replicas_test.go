package cluster

import (
	"log/slog"
	"testing"

	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// TestReplicasOfAnEarlierDefinition are shown as what they are: on their way out, though their checks pass.
func TestReplicasOfAnEarlierDefinition(t *testing.T) {
	id := serving.ModelID{Model: "m", Version: "1"}
	cat := &serving.Catalog{Models: map[string]*serving.Model{"m": {Name: "m", Versions: map[string]*serving.Version{"1": {ModelID: id, Generation: "b"}}}}}
	r := newReplicas(nil, func() *serving.Catalog { return cat }, slog.New(slog.DiscardHandler))
	var running []nomadfleet.Replica
	var registered []serving.Endpoint
	want := map[string]string{"a": "draining", "b": "ready", "": "ready", "c": "draining"}
	for generation := range want {
		running = append(running, nomadfleet.Replica{ID: "of " + generation, Job: jobs.ID(id), State: nomadfleet.Running})
		registered = append(registered, serving.Endpoint{Replica: "of " + generation, Ready: true, Models: []serving.Definition{{ModelID: id, Generation: generation}}})
	}
	r.running.Store(&running)
	r.registered.Store(&registered)
	for _, one := range r.Replicas() {
		if state := want[one.ID[len("of "):]]; one.State != state {
			t.Errorf("the replica %s is %s, want %s", one.ID, one.State, state)
		}
	}
}

// TestInstancesOfServices are what gateways call, of versions that others run.
func TestInstancesOfServices(t *testing.T) {
	id := serving.ModelID{Model: "m", Version: "1"}
	cat := &serving.Catalog{Models: map[string]*serving.Model{"m": {Name: "m", Versions: map[string]*serving.Version{
		"1": {ModelID: id, Service: &serving.ServiceSpec{Name: "others"}}, "2": {ModelID: serving.ModelID{Model: "m", Version: "2"}},
	}}}}
	r := newReplicas(nil, func() *serving.Catalog { return cat }, slog.New(slog.DiscardHandler))
	r.calls = func(of serving.ModelID) []api.Replica {
		if of != id {
			t.Errorf("%v is asked for", of)
		}
		return []api.Replica{{ID: "m:1@b:1/x@gw", Name: "m:1@b:1/x@gw", State: "failed"}, {ID: "m:1@a:1@gw", State: "ready"}}
	}
	list := r.Replicas()
	if len(list) != 2 || list[0].State != "ready" || list[0].Reason != "" || list[1].ID != "m:1@b:1~x@gw" || list[1].Name != "m:1@b:1/x@gw" || list[1].Reason == "" {
		t.Errorf("the instances are %+v", list)
	}
}
