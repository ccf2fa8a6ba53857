//go:build system

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// backsUp has the periodic job make a backup, and returns its file.
func (c *installed) backsUp() string {
	c.Helper()
	binary, err := servers.Binary("nomad")
	require.NoError(c, err)
	to := filepath.Join(c.dir, "backups")
	run := exec.CommandContext(c.Context(), binary, "job", "run", "-var", "namespace=topsail", "-var", "program="+filepath.Join(c.dir, "topsail"),
		"-var", "destination="+to+"/", "-var", "keep=2", "backup.nomad.hcl")
	run.Dir = "../../nomad/jobs"
	run.Env = append(os.Environ(), "NOMAD_ADDR=http://"+c.Nomad.Addr, "HOME="+c.dir)
	if out, err := run.CombinedOutput(); err != nil {
		c.Fatalf("%v\n%s", err, out)
	}
	if _, _, err := c.jobs.Jobs().PeriodicForce("topsail-backup", &nomad.WriteOptions{Namespace: "topsail"}); err != nil {
		c.Fatal(err)
	}
	var made []string
	c.until("a backup of the periodic job", func() error {
		made, _ = filepath.Glob(filepath.Join(to, "topsail-backup-*.tar"))
		if len(made) != 1 {
			return fmt.Errorf("there are the backups %v", made)
		}
		return nil
	})
	return made[0]
}

// losesAndRestores loses what the backup has, the bundle and what nodes have of it too, and
// brings it back through management: a version starts from it, and answers.
func (c *installed) losesAndRestores(api, file, digest string) {
	c.Helper()
	c.ask(api, "POST", "/apps", `{"name":"late","input_type":"doubles","latency_slo_micros":500000}`, 201)
	c.ask(api, "DELETE", "/apps/sum", "", 204)
	c.ask(api, "DELETE", "/models/sum", "", 204)
	c.ask(api, "DELETE", "/artifacts/"+digest, "", 204)
	c.until("the end of all replicas", func() error {
		allocs, _, err := c.jobs.Allocations().List(nil)
		for _, alloc := range allocs {
			if strings.HasPrefix(alloc.JobID, "topsail-sum-") && alloc.ClientStatus == nomad.AllocClientStatusRunning {
				err = fmt.Errorf("%s still runs", alloc.Name)
			}
		}
		return err
	})
	require.NoError(c, os.RemoveAll(c.work()))
	restore := exec.CommandContext(c.Context(), filepath.Join(c.dir, "topsail"), "restore", file, "--yes")
	restore.Env = append(os.Environ(), "TOPSAIL_ADMIN_URL="+strings.TrimSuffix(api, "/api/v1"), "HOME="+c.dir)
	out, err := restore.CombinedOutput()
	if err != nil {
		c.Fatalf("%v\n%s", err, out)
	}
	for _, words := range []string{"- app late", "+ app sum", "1 bundles are restored"} {
		if !strings.Contains(string(out), words) {
			c.Errorf("to restore says nothing of %q:\n%s", words, out)
		}
	}
	c.ask(api, "GET", "/apps/late", "", 404)
	c.ask(api, "GET", "/models/sum/versions/2", "", 404)
	c.ask(api, "GET", "/artifacts/"+digest, "", 200)
	c.serves(api, "1")
	c.answers(42)
}
