package consulregistry

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/serving"
)

func TestEndpoints(t *testing.T) {
	const answer = `[
		{"Node": {"Address": "10.0.0.1"}, "Service": {"ID": "s-1", "Port": 9000, "Meta": {"model": "wine", "version": "1", "definition": "g", "models": "wine:1"}},
			"Checks": [{"Status": "passing"}, {"Status": "passing"}]},
		{"Node": {"Address": "10.0.0.1"}, "Service": {"ID": "s-2", "Address": "10.0.0.9", "Port": 9001, "Meta": {"replica": "a", "models": "wine:2, digits:v1.0+b,wine:2,,broken,:,x:"}},
			"Checks": [{"Status": "passing"}, {"Status": "warning"}]},
		{"Node": {"Address": "fd00::1"}, "Service": {"ID": "s-3", "Port": 9002}, "Checks": []},
		{"Node": {"Address": "10.0.0.1"}, "Service": {"ID": "no-port"}},
		{"Service": {"ID": "no-address", "Port": 1}},
		{"Node": {"Address": "10.0.0.2"}, "Service": {"ID": "old", "Port": 1, "Meta": {"replica": "b"}, "CreateIndex": 9}, "Checks": [{"Status": "critical"}]},
		{"Node": {"Address": "10.0.0.3"}, "Service": {"ID": "new", "Port": 2, "Meta": {"replica": "b"}, "CreateIndex": 5}, "Checks": [{"Status": "passing"}]},
		{"Node": {"Address": "10.0.0.4"}, "Service": {"ID": "z", "Port": 3, "Meta": {"replica": "c"}, "CreateIndex": 5}},
		{"Node": {"Address": "10.0.0.5"}, "Service": {"ID": "y", "Port": 4, "Meta": {"replica": "c"}, "CreateIndex": 6}},
		{"Node": {"Address": "10.0.0.5"}}, null]`
	want := []serving.Endpoint{
		{Replica: "a", Addr: "10.0.0.9:9001", Models: []serving.Definition{{ModelID: serving.ModelID{Model: "wine", Version: "2"}}, {ModelID: serving.ModelID{Model: "digits", Version: "v1.0+b"}}}},
		{Replica: "b", Addr: "10.0.0.3:2", Ready: true},
		{Replica: "c", Addr: "10.0.0.5:4", Ready: true},
		{Replica: "s-1", Addr: "10.0.0.1:9000", Ready: true, Models: []serving.Definition{{ModelID: serving.ModelID{Model: "wine", Version: "1"}, Generation: "g"}}},
		{Replica: "s-3", Addr: "[fd00::1]:9002", Ready: true},
	}
	if got := endpoints(decode(t, []byte(answer))); !slices.EqualFunc(got, want, equal) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func decode(t *testing.T, answer []byte) (entries []*api.ServiceEntry) {
	if err := json.NewDecoder(bytes.NewReader(answer)).Decode(&entries); err != nil {
		t.Skip("not an answer") // only the fuzzer comes here with less
	}
	return entries
}

// FuzzEndpoints: whatever an answer holds, each replica is in the list once, in
// order, and can be dialled.
func FuzzEndpoints(f *testing.F) {
	f.Add([]byte(`[{"Node": {"Address": "n"}, "Service": {"ID": "s", "Port": 1, "Meta": {"models": "a:1,b:2"}}, "Checks": [{"Status": "passing"}]}, null]`))
	f.Add([]byte(`[{"Service": {"ID": "s", "Port": -1}, "Checks": [null]}, {"Service": null}]`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		entries := decode(t, answer)
		list := endpoints(entries)
		for i, e := range list {
			if e.Replica == "" || e.Addr == "" || i > 0 && list[i-1].Replica >= e.Replica {
				t.Errorf("endpoint %d is %+v", i, e)
			}
		}
		slices.Reverse(entries)
		if again := endpoints(entries); len(again) != len(list) {
			t.Errorf("%d endpoints, and %d the other way round", len(list), len(again))
		}
	})
}

func BenchmarkEndpoints(b *testing.B) {
	entries := make([]*api.ServiceEntry, 200)
	for i := range entries {
		entries[i] = &api.ServiceEntry{
			Service: &api.AgentService{ID: string(rune('a' + i)), Address: "10.0.0.1", Port: 9000, Meta: map[string]string{"model": "wine", "version": "1"}},
			Checks:  api.HealthChecks{{Status: api.HealthPassing}},
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		endpoints(entries)
	}
}
