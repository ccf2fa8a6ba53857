package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/backup"
)

var digest = fmt.Sprintf("sha256:%064x", 7)

const manifest = `{"format":1,"runtime":"python","python":"3.11","requirements":["numpy"],"entry":"m:f","input_type":"doubles","input_length":2,
	"example":[1,2],"description":"d","options":{"a":"b"},"files":{"m.py":{"sha256":"00","size":1}}}`

// outside is what there is beside the store, with something in every member.
type outside struct{}

func (outside) Learned(_ context.Context, app, user, about string) (*serving.Learning, error) {
	one := serving.ModelLearning{ModelID: serving.ModelID{Model: "m", Version: "1"}, Share: 0.5, Worth: 0.1, Judged: 3, Loss: 0.2}
	return &serving.Learning{App: app, Policy: "exp3", User: user, Context: about, Steps: 3, Note: "n", Models: []serving.ModelLearning{one}}, nil
}

func (outside) UsageOf(_ context.Context, objects []serving.UsageKey) (all []serving.Usage, err error) {
	for _, object := range objects {
		stage := object
		stage.Stage = "a"
		u := serving.Usage{Key: object, Since: time.Unix(1e9, 0), Answers: 5, Cached: 2, Failed: 1, Missed: 3, Micros: 700, Least: 1, Most: time.Second,
			Last: &serving.UsageFailure{At: time.Unix(1e9, 0), Cause: "model_error", Message: "ValueError"}}
		all = append(all, u, serving.Usage{Key: stage, Answers: 1})
	}
	return all, nil
}

func (outside) Forget(context.Context, string, string, string) error { return nil }

func (outside) Streams() map[string]*api.StreamNow {
	lag := int64(12)
	now := &api.StreamNow{Processes: 2, Lag: &lag, Waiting: 61.5, Conditions: []string{"cannot predict with app a"}}
	return map[string]*api.StreamNow{"wine": now, "records": now, "s": now}
}

func (outside) Replicas() []api.Replica {
	return []api.Replica{
		{ID: "r1", Model: "m", Version: "1", State: "ready", Name: "r", Node: "n", Allocation: "a", PID: 1, Restarts: 2, Since: time.Unix(1e9, 0), InFlight: 3, Latency: 4},
		{ID: "r2", Model: "m", Version: "2", State: "failed", Reason: "exit status 1"},
	}
}

func (outside) Restart(context.Context, string) error { return nil }
func (outside) Drain(context.Context, string) error   { return nil }

func (outside) Ended(_ context.Context, id string) (serving.ModelID, error) {
	if id == "r0" {
		return serving.ModelID{Model: "m", Version: "1"}, nil
	}
	return serving.ModelID{}, api.ErrNoReplica
}

func (outside) Logs(context.Context, string, api.LogQuery) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("a line\n")), nil
}

func decision() serving.Decision {
	return serving.Decision{ModelID: serving.ModelID{Model: "m", Version: "1"}, At: time.Unix(1e9, 0), From: 1, To: 2, Rule: "capacity", Reason: "r", Outcome: "applied", Leader: "l", Fence: 3}
}

func (outside) Decisions(context.Context, int, serving.ModelID) ([]serving.Decision, error) {
	return []serving.Decision{decision()}, nil
}

func (outside) Scheduler(context.Context) (api.SchedulerStatus, error) {
	last := decision()
	return api.SchedulerStatus{Leader: "l", DemandUnknown: 1, Pools: []api.Pool{
		{Model: "m", Version: "1", Desired: 2, Ready: 1, Demand: 3, Capacity: 4, Blocked: 5, Alarm: true, Problem: true, Pin: &serving.Pin{Count: 1}, Last: &last},
		{Model: "m", Version: "2"},
	}}, nil
}

func (outside) Now() api.TrafficNow {
	return api.TrafficNow{At: time.Unix(1e9, 0), Window: 60, Apps: []api.AppTraffic{{App: "a", SLO: 1, Rate: 2, Attainment: new(1.0), Defaults: new(0.0), Causes: map[string]float64{"timeout": 1}}}}
}

func (outside) Chosen(string) []api.ModelTraffic {
	return []api.ModelTraffic{{ModelID: serving.ModelID{Model: "m", Version: "1"}, Chosen: 0.5, Answered: 1, Agreed: 0.5}}
}

func (outside) App(name string, _ time.Duration) api.AppSeries {
	one := 1.5
	series := []*float64{&one, nil}
	return api.AppSeries{App: name, SLO: 1, Step: 10, Times: []int64{10, 20}, Rate: series, Attainment: series, P50: series, P95: series, P99: series, CacheHits: series,
		Causes: map[string][]*float64{"timeout": series}}
}

func (outside) Version(id serving.ModelID, _ time.Duration) api.VersionSeries {
	series := []*float64{nil}
	return api.VersionSeries{Model: id.Model, Version: id.Version, Step: 10, Times: []int64{10}, Demand: series, Capacity: series, Desired: series, Ready: series,
		Decisions: []serving.Decision{decision()}}
}

func (outside) Stages(id serving.ModelID, _ string, _ time.Duration) api.VersionStages {
	x := 1.5
	return api.VersionStages{Model: id.Model, Version: id.Version, At: time.Unix(1e9, 0), Window: 60, Bottleneck: "s", Stages: []api.StageTraffic{
		{Stage: "s", After: []string{"input"}, Workers: 2, Ready: 1, Waiting: 3, Rate: &x, Busy: &x, BatchMean: 2, Wait: &x, WaitP99: &x, Run: &x, RunP99: &x, Ended: map[string]uint64{"ok": 4}},
		{Stage: "t", After: []string{"s"}},
	}}
}

func (outside) Performance([]serving.Definition) *api.Performance {
	x := 0.5
	return &api.Performance{Since: time.Unix(1e9, 0).UTC(), Answers: 4, Errors: &x, Batches: 2, BatchMean: &x, P50: &x, P99: &x, Throughput: &x}
}

func (outside) Measured(r *api.Replica) {
	r.QueueLength, r.Wait, r.BatchLimit, r.BatchMean, r.Answers, r.Profile = 1, 2, 3, 4.5, 6, []api.ProfilePoint{{Size: 1, Micros: 2}}
}

// fakeBundles keeps one bundle.
type fakeBundles struct{ there *bool }

func (s fakeBundles) Put(_ context.Context, r io.Reader) (api.Artifact, bool, error) {
	content, err := io.ReadAll(r)
	if err != nil || len(content) == 0 {
		return api.Artifact{}, false, fmt.Errorf("%w: it is empty", api.ErrBundleInvalid)
	}
	created := !*s.there
	*s.there = true
	a, err := s.Get(context.Background(), digest)
	return a, created, err
}

func (s fakeBundles) Get(_ context.Context, name string) (api.Artifact, error) {
	if !*s.there || name != digest {
		return api.Artifact{}, api.ErrNoBundle
	}
	return api.Artifact{Digest: digest, Size: 9, Created: time.Unix(1e9, 0), Manifest: json.RawMessage(manifest)}, nil
}

func (fakeBundles) Address(context.Context, string, time.Time) (string, error) {
	return "?expires=1&signature=good", nil
}

func (fakeBundles) Signed(_ string, query url.Values, _ time.Time) error {
	if query.Get("signature") != "good" {
		return errors.New("the address is not signed by this cluster")
	}
	return nil
}

type content struct{ *bytes.Reader }

func (content) Close() error { return nil }

func (s fakeBundles) Open(_ context.Context, name string) (io.ReadSeekCloser, error) {
	_, err := s.Get(context.Background(), name)
	return content{bytes.NewReader([]byte("PK"))}, err
}

func (s fakeBundles) List(context.Context) ([]string, error) {
	if !*s.there {
		return nil, nil
	}
	return []string{digest}, nil
}

func (s fakeBundles) Stored(ctx context.Context) (list []bundle.Stored, err error) {
	digests, err := s.List(ctx)
	for _, digest := range digests {
		list = append(list, bundle.Stored{Digest: digest, Size: 2, Created: time.Unix(1e9, 0)})
	}
	return list, err
}

func (s fakeBundles) Delete(context.Context, string) error { *s.there = false; return nil }

// served is the API over a store on disk, for whoever asks on this machine.
func served(t *testing.T) http.Handler {
	store, err := filestore.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	stream := serving.Stream{Name: "wine", Kind: serving.DataStream, App: "a", Input: []string{"in"}, Output: "out", DeadLetter: "dead"}
	if _, err := store.Apply(t.Context(), catalog.PutStream{Stream: stream}, 0); err != nil {
		t.Fatal(err)
	}
	bundles := fakeBundles{new(bool)}
	guard := auth.New(auth.Config{Catalog: store.Catalog})
	return guard.Handler(api.New(&api.System{
		Mode: "cluster", Version: "1", Gateway: func() string { return "http://127.0.0.1:1337" },
		Store: store, Audit: store, Usage: outside{}, Learning: outside{}, Replicas: outside{}, Scheduler: outside{}, Traffic: outside{}, Artifacts: bundles,
		Backups:  &backup.Service{Store: store, Bundles: bundles, Mode: "local", Release: "1", Spool: t.TempDir()},
		SetCount: func(context.Context, string, int, string) error { return nil },
		Cluster: func(context.Context) api.Cluster {
			return api.Cluster{Mode: "cluster", Version: "1", Processes: []api.Process{{Role: "gateway", Name: "g", Addr: "a", State: "ok", Detail: "d", Leader: true, Revision: 4}},
				Servers: []check.Finding{{Name: "redis", State: check.OK, Detail: "d", Next: "n", Checked: time.Unix(1e9, 0)}},
				Alarms:  []check.Finding{{State: check.Warn, Detail: "t", Next: "n", Kind: "app", Name: "a"}}}
		},
		Job: func(context.Context, serving.ModelID, bool) (api.Job, error) {
			return api.Job{Kind: "nomad", Text: "job", Plan: "p"}, nil
		},
		Ask: func(context.Context, string, []byte) (api.Trial, error) {
			return api.Trial{Status: 200, Answer: json.RawMessage(`{"output":1}`), Micros: 5, Stages: []api.Stage{{Stage: "model", Micros: 4}}, Gateway: "g"}, nil
		},
		TOML: func(*serving.Catalog) ([]byte, error) { return []byte("# empty\n"), nil },
	}, guard, api.Options{}))
}
