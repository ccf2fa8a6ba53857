//go:build servers

package nomadfleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// TestGPUs: replicas on one node get GPUs of their own from Nomad's device plugin, and
// slices of MIG by their profile.
func TestGPUs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		gpu  serving.GPU
		want []string
	}{
		"gpus":   {serving.GPU{Count: 1, MemoryMB: 20000}, []string{"GPU-a", "GPU-b"}},
		"slices": {serving.GPU{Count: 1, Device: "nvidia/gpu/1g.10gb"}, []string{"MIG-c0", "MIG-c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, gives := open(t, settings(t)), t.TempDir()
			v := sleeper(name)
			v.Resources = serving.Resources{MemoryMB: 32, GPU: test.gpu}
			v.Container.Command = []string{"/bin/sh", "-c", `[ "$CUDA_VISIBLE_DEVICES" = "$NVIDIA_VISIBLE_DEVICES" ] && echo "$CUDA_VISIBLE_DEVICES" >` + gives + `/$TOPSAIL_REPLICA; exec sleep 1000`}
			register(t, f, v, 3)
			await(t, f, v.ModelID, "as many as there are GPUs, with the reason", func(j serving.Job) bool { // for a moment Nomad takes ports to collide
				return j.Running == 2 && strings.Contains(j.Problem, "no node has a free nvidia/gpu")
			})
			var given []string
			for until := time.Now().Add(waitFor); !slices.Equal(given, test.want); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("replicas have %q", given)
				}
				given = nil
				files, _ := filepath.Glob(gives + "/*")
				for _, file := range files {
					text, _ := os.ReadFile(file)
					given = append(given, strings.TrimSpace(string(text)))
				}
				slices.Sort(given)
			}
		})
	}
}
