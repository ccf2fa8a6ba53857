//go:build servers

package nomadfleet

import (
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// TestPlan: what no node of this machine has is named in our words.
func TestPlan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*serving.Version, *jobs.Settings)
		want   string
	}{
		"fits": {func(*serving.Version, *jobs.Settings) {}, "3 to start"},
		"gpu": {func(v *serving.Version, _ *jobs.Settings) {
			v.Resources.GPU = serving.GPU{Count: 1, Device: "nvidia/gpu/NVIDIA H100"}
		}, "3 cannot start: no node has a free nvidia/gpu/NVIDIA H100 device"},
		"gpus": {func(v *serving.Version, _ *jobs.Settings) {
			v.Resources.GPU = serving.GPU{Count: 2, MemoryMB: 90000}
		}, "no node has 2 free nvidia/gpu devices with 90000 MiB"},
		"mig": {func(v *serving.Version, _ *jobs.Settings) {
			v.Resources.GPU = serving.GPU{Count: 1, Device: "nvidia/gpu/7g.80gb"}
		}, "no node has a free nvidia/gpu/7g.80gb device"},
		"memory": {func(v *serving.Version, _ *jobs.Settings) { v.Resources.MemoryMB = 12000 }, "2 cannot start: no node has 12032 MB of memory free"},
		"cores":  {func(v *serving.Version, _ *jobs.Settings) { v.Resources.Cores = 999 }, "999 CPUs that no other job has"},
		"cpu":    {func(v *serving.Version, _ *jobs.Settings) { v.Resources.CPU = 1e6 }, "3 cannot start: no node has 1000010 MHz of CPU free"},
		"docker": {func(v *serving.Version, _ *jobs.Settings) { v.Container.Image = "x" }, "no node has the drivers docker and raw_exec"},
		"consul": {func(_ *serving.Version, s *jobs.Settings) { s.Provider = "consul" }, "no node has a connection to Consul"},
		"vault":  {func(_ *serving.Version, s *jobs.Settings) { s.VaultRole = "x" }, "no node has a connection to Vault"},
		"place":  {func(_ *serving.Version, s *jobs.Settings) { s.Datacenters = []string{"moon"} }, "no node is ready in the job's datacenters and node pool"},
	} {
		s := settings(t)
		v := sleeper("plan")
		v.Replicas = 3
		test.change(v, &s)
		text, err := open(t, s).Plan(t.Context(), v, time.Second)
		if err != nil || !strings.Contains(text, test.want) || !strings.HasPrefix(text, jobs.ID(v.ModelID)) {
			t.Errorf("%s: %q, error %v; want %q", name, text, err, test.want)
		}
	}
}

// sleeper is a version whose replicas do nothing.
func sleeper(model string) *serving.Version {
	return &serving.Version{
		ModelID:   serving.ModelID{Model: model, Version: "1"},
		InputType: serving.Doubles, Replicas: 1,
		Container: serving.Container{Command: []string{"/bin/sleep", "1000"}},
	}
}
