package local

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/process"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
	"github.com/topsail-serving/topsail/web/api"
)

// TestMain is the guard of child processes, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "guard" && os.Args[2] == "--" {
		os.Exit(process.RunGuard(os.Args[3:]))
	}
	os.Exit(m.Run())
}

func TestFleet(t *testing.T) {
	f := fleetWith(t, 2*time.Second) // the suite's replicas never get ready
	contract.Fleet(t, contract.FleetRig{JobFleet: f, Newer: newer{f}}, "local")
}

// TestGPUs spreads replicas over the GPUs that nvidia-smi names: a whole one, and two
// slices of another.
func TestGPUs(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("CUDA_VISIBLE_DEVICES", "") // so that it is as it was in the end
	os.Unsetenv("CUDA_VISIBLE_DEVICES")
	const smi = "#!/bin/sh\ncase $1 in\n-L) echo 'GPU 0: NVIDIA L4 (UUID: GPU-a)'; echo 'GPU 1: NVIDIA A100 (UUID: GPU-b)'\n" +
		"echo '  MIG 1g.10gb     Device  0: (UUID: MIG-b0)'; echo '  MIG 1g.10gb     Device  1: (UUID: MIG-b1)';;\nesac\n"
	f := fleetWith(t, time.Hour)
	gives := t.TempDir() // what each process was given
	v := &serving.Version{
		ModelID: serving.ModelID{Model: "m", Version: "1"}, InputType: serving.Doubles, Resources: serving.Resources{GPU: serving.GPU{Count: 1}},
		Container: serving.Container{Command: []string{"sh", "-c", `echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES > ` + gives + `/$$; exec sleep 60`}},
	}
	given := func() (all []string) {
		files, _ := filepath.Glob(gives + "/*")
		for _, name := range files {
			if text, _ := os.ReadFile(name); len(text) > 0 {
				all = append(all, strings.TrimSpace(string(text)))
			}
		}
		slices.Sort(all)
		return all
	}
	index := uint64(0)
	count := func(v *serving.Version, n int) {
		t.Helper()
		require.NoError(t, f.SetCount(t.Context(), v, 0, serving.JobChange{Count: n, Index: index}))
		index++
	}
	described := func() string {
		var all []string
		for _, r := range f.members() {
			d := describe(r, route.Status{})
			all = append(all, d.ID+" "+d.State+": "+d.Reason)
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}

	count(v, 1)
	wait.Until(t, "the replicas", func() bool {
		return strings.Contains(described(), "m:1~0 failed: it needs a GPU, and nvidia-smi, which finds them, is missing: install")
	}, described)
	if jobs, _ := f.Jobs(t.Context()); jobs[0].Running != 0 || !strings.Contains(jobs[0].Problem, "nvidia-smi") {
		t.Errorf("the job is %+v", jobs[0])
	}
	if err := (replicas{fleet: f}).Restart(t.Context(), "m:1~0"); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "nvidia-smi") {
		t.Errorf("a restart: %v", err)
	}
	count(v, 0)
	wait.Until(t, "the replicas", func() bool { return described() == "" }, described)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(smi), 0o700))

	count(v, 4)
	three := []string{"GPU-a GPU-a", "MIG-b0 MIG-b0", "MIG-b1 MIG-b1"}
	wait.Until(t, "the replicas", func() bool {
		return slices.Equal(given(), three) && strings.Contains(described(), " starting: it waits for a GPU, in use by m:1/")
	}, described)
	// One that ends gives its device to the one that waits.
	f.mu.Lock()
	j := f.jobs[v.ModelID]
	at := slices.IndexFunc(j.members, func(m *member) bool { return m.child.Load() != nil })
	ended := j.members[at]
	ended.stop()
	j.members = slices.Delete(j.members, at, at+1)
	f.mu.Unlock()
	wait.Until(t, "the replicas", func() bool { return len(given()) == 4 && !strings.Contains(described(), "waits") }, described)

	// What replaces them has to wait for them to end, and does not wait to be ready.
	next := *v
	next.Container.Env = map[string]string{"RELEASE": "2"}
	count(&next, 3)
	wait.Until(t, "the replicas", func() bool { return len(given()) == 7 && !strings.Contains(described(), "draining") }, described)
	for _, uuids := range three {
		if n := strings.Count(strings.Join(given(), "\n"), uuids); n < 2 {
			t.Errorf("%s was given %d times, of %q", uuids, n, given())
		}
	}
}

func fleetWith(t *testing.T, replaceWithin time.Duration) *fleet {
	f := newFleet(func() *serving.Catalog { return &serving.Catalog{} })
	f.dataDir, f.guard = t.TempDir(), []string{os.Args[0], "guard", "--"}
	f.registry, f.local, f.metrics, f.demand = inprocess.NewRegistry(), new(rpc.Local), sidecar.NewMetrics(obs.NewRegistry()), demand.NewMeter()
	f.log, f.replaceWithin = slog.New(slog.DiscardHandler), replaceWithin
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- f.Run(running) }()
	t.Cleanup(func() { stop(); <-ended })
	return f
}

// newer is a fleet for which every version is defined anew.
type newer struct{ *fleet }

func (n newer) Jobs(ctx context.Context) ([]serving.Job, error) {
	list, err := n.fleet.Jobs(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range list {
		list[i].Outdated = n.jobs[list[i].ModelID].version.Container.Env["RELEASE"] == ""
	}
	return list, err
}

func (n newer) SetCount(ctx context.Context, v *serving.Version, slo time.Duration, change serving.JobChange) error {
	own := *v
	own.Container.Env = maps.Clone(v.Container.Env)
	own.Container.Env["RELEASE"] = "2"
	return n.fleet.SetCount(ctx, &own, slo, change)
}

// Nobody asks the replicas of a version that has become another one: they do not wait for
// the new ones to be ready.
func TestAnotherGenerationReplacesAtOnce(t *testing.T) {
	f, ctx := fleetWith(t, time.Hour), t.Context()
	v := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}, Generation: "a", InputType: serving.Doubles, Container: serving.Container{Command: []string{"sleep", "60"}}}
	require.NoError(t, f.SetCount(ctx, v, 0, serving.JobChange{Count: 1}))
	next := *v
	next.Generation = "b"
	require.NoError(t, f.SetCount(ctx, &next, 0, serving.JobChange{Count: 1, Index: 1}))
	wait.Until(t, "a replica of the next generation alone", func() bool {
		members := f.members()
		return len(members) == 1 && members[0].model.Generation == "b"
	})
}
