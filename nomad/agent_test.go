//go:build servers

package nomad

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// TestAgents has Nomad and Consul read their configuration.
func TestAgents(t *testing.T) {
	files, err := filepath.Glob("agent/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			program, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".hcl"), "-")
			path, err := servers.Binary(program)
			require.NoError(t, err)
			base := filepath.Join(t.TempDir(), "base.hcl")
			text := "data_dir = \"/opt/agent\"\n"
			args := []string{"validate", base, file}
			if program == "nomad" {
				text += "client {\n  enabled = true\n}\n"
				args = []string{"config", "validate", base, file}
			}
			require.NoError(t, os.WriteFile(base, []byte(text), 0o600))
			if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
