package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/test/require"
)

// examine runs `topsail doctor` on a configuration; ok says that it found nothing broken.
func examine(t *testing.T, config string, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "topsail.toml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	cmd := exec.CommandContext(t.Context(), programs.topsail, append([]string{"doctor", "--config", file, "--data-dir", dir}, args...)...)
	cmd.Env = append(os.Environ(), "CONSUL_HTTP_ADDR=", "NOMAD_ADDR=", "REDIS_URL=", "INFLUX_HOST=")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return out.String(), said.String(), err == nil
}

const anyPorts = "[gateway]\naddr = \"127.0.0.1:0\"\n[web]\naddr = \"127.0.0.1:0\"\n[ops]\naddr = \"127.0.0.1:0\"\n"

func TestDoctorOfLocalMode(t *testing.T) {
	const model = "[[model]]\nname = \"m\"\nversion = \"1\"\ninput_type = \"doubles\"\ncommand = [\"no-such-program\"]\n"
	out, said, ok := examine(t, anyPorts)
	if !ok || said != "" || strings.Count(out, " ok ") != 7 || !strings.HasPrefix(out, "CHECK") {
		t.Errorf("got %s%s", out, said)
	}
	out, said, ok = examine(t, anyPorts+model, "-o", "json")
	var all []check.Finding
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if ok || len(all) != 8 || all[7].Name != "model m:1" || all[7].State != check.Failed || said != "topsail: 1 of 8 checks fail\n" {
		t.Errorf("got %+v, %s", all, said)
	}
}

func TestDoctorOfWhatIsWrong(t *testing.T) {
	if out, _, ok := examine(t, "[gatway]\n[web]\naddr = 1\n"); ok || !strings.Contains(out, "configuration  failed") || !strings.Contains(out, "topsail.toml:1:2") || strings.Count(out, "\n") != 2 {
		t.Errorf("got %s", out)
	}
	if out, said, ok := examine(t, anyPorts, "-o", "xml"); ok || out != "" || !strings.Contains(said, "use table or json") {
		t.Errorf("got %s%s", out, said)
	}
}
