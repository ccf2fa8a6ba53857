package nomadfleet

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// answering is a Fleet of a Nomad that answers these paths and knows no others.
func answering(t *testing.T, answers map[string]any) *Fleet {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.Error(w, "not found", http.StatusNotFound)
			return
		}
		json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	f, err := Open(Config{
		API: &api.Config{Address: server.URL}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Jobs: jobs.Settings{Program: jobs.Program{Source: "/bin/topsail", CPU: 10, MemoryMB: 32}, Provider: "nomad", CPU: 10, MemoryMB: 32},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestGoneBetweenTwoCalls: what Nomad has forgotten since the call before is not there, and
// no error of anything else.
func TestGoneBetweenTwoCalls(t *testing.T) {
	id := serving.ModelID{Model: "m", Version: "1"}
	name := jobs.ID(id)
	meta := map[string]string{jobs.MetaModel: id.Model, jobs.MetaVersion: id.Version, jobs.MetaGeneration: "0"}
	index, yes, no := uint64(1), true, false
	outdated := api.Job{ID: &name, Meta: meta, JobModifyIndex: &index, Version: &index, Stop: &no, Stable: &yes}
	stub := api.JobListStub{ID: name, Meta: meta, JobModifyIndex: index}

	f := answering(t, map[string]any{"/v1/jobs": []api.JobListStub{stub}, "/v1/job/" + name: outdated})
	stubs, err := f.list(t.Context())
	if err != nil || len(stubs) != 1 {
		t.Fatalf("%d jobs, error %v", len(stubs), err)
	}
	if details, err := f.refresh(t.Context(), stubs); err != nil || len(details) != 0 {
		t.Errorf("a job that is purged: %v, error %v", details, err)
	}
	if text, err := f.failure(t.Context(), name); err != nil || text != "" {
		t.Errorf("the failure of a job that is purged: %q, error %v", text, err)
	}

	replica := strings.Repeat("a", 36)
	f = answering(t, map[string]any{"/v1/allocation/" + replica: api.Allocation{ID: replica, JobID: name, TaskGroup: jobs.Group}})
	if err := f.Restart(t.Context(), replica); !errors.Is(err, ErrNoReplica) {
		t.Errorf("restart: %v", err)
	}
	if err := f.Drain(t.Context(), replica); !errors.Is(err, ErrNoReplica) {
		t.Errorf("drain: %v", err)
	}
}
