//go:build servers

package nomad

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// TestInstall runs the commands of the README, but has the jobs only validated.
func TestInstall(t *testing.T) {
	c := shared
	dir := filepath.Join(t.TempDir(), "nomad")
	require.NoError(t, os.Mkdir(dir, 0o755))
	deploy, err := filepath.Abs("../deploy")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(deploy, filepath.Join(dir, "../deploy")))
	for _, name := range []string{"cert.pem", "key.pem", "keys", "ops_keys"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("secret"), 0o600))
	}
	jobs, err := filepath.Abs("jobs")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(jobs, filepath.Join(dir, "jobs")))
	c.readme(t, "README.md", dir, `
topsail() { :; }
nomad() {
  case "$1 $2" in
    "job run") shift 2; command nomad job validate "$@" ;;
    "job status") ;;
    *) command nomad "$@" ;;
  esac
}
`)
}

// commands are the blocks of them in Markdown.
var commands = regexp.MustCompile("(?s)```sh\n(.*?)```")

// readme runs the commands of a page in a folder, with what is defined before them.
func (c *cluster) readme(t *testing.T, page, dir, before string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	script := "set -eu\n" + before
	for _, block := range commands.FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	nomad, err := servers.Binary("nomad")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(nomad)+":"+os.Getenv("PATH"),
		"NOMAD_ADDR=http://"+c.nomad.Addr, "NOMAD_TOKEN="+c.nomadRoot,
		"CONSUL_HTTP_ADDR="+c.consul.Addr, "CONSUL_HTTP_TOKEN="+c.consulRoot)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
