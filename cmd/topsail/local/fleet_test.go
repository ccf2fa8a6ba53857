package local

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"testing"
	"time"

	"topsail/internal/contract"
	"topsail/internal/demand"
	"topsail/internal/local"
	"topsail/internal/obs"
	"topsail/internal/process"
	"topsail/serving"
	"topsail/sidecar"
)

// TestMain is the guard of child processes, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "guard" && os.Args[2] == "--" {
		os.Exit(process.RunGuard(os.Args[3:]))
	}
	os.Exit(m.Run())
}

func TestFleet(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	f := newFleet(ctx, func() *serving.Catalog { return &serving.Catalog{} })
	f.dataDir, f.guard = t.TempDir(), []string{os.Args[0], "guard", "--"}
	f.registry, f.metrics, f.demand = local.NewRegistry(), sidecar.NewMetrics(obs.NewRegistry()), demand.NewMeter()
	f.log = slog.New(slog.DiscardHandler)
	f.replaceWithin = 2 * time.Second // the suite's replicas never get ready
	t.Cleanup(func() { stop(); f.wait() })
	contract.Fleet(t, contract.FleetRig{JobFleet: f, Newer: newer{f}}, "local")
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
	ctx, stop := context.WithCancel(context.Background())
	f := newFleet(ctx, func() *serving.Catalog { return &serving.Catalog{} })
	f.dataDir, f.guard = t.TempDir(), []string{os.Args[0], "guard", "--"}
	f.registry, f.metrics, f.demand = local.NewRegistry(), sidecar.NewMetrics(obs.NewRegistry()), demand.NewMeter()
	f.log, f.replaceWithin = slog.New(slog.DiscardHandler), time.Hour
	t.Cleanup(func() { stop(); f.wait() })
	v := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}, Generation: "a", InputType: serving.Doubles, Container: serving.ContainerSpec{Command: []string{"sleep", "60"}}}
	if err := f.SetCount(ctx, v, 0, serving.JobChange{Count: 1}); err != nil {
		t.Fatal(err)
	}
	next := *v
	next.Generation = "b"
	if err := f.SetCount(ctx, &next, 0, serving.JobChange{Count: 1, Index: 1}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		members := f.members()
		if len(members) == 1 && members[0].model.Generation == "b" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d replicas run", len(members))
		}
	}
}
