//go:build system

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	harness "github.com/topsail-serving/topsail/test/harness"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// installed is a cluster that was installed by the words of nomad/README.md.
type installed struct {
	*testing.T
	*servers.Cluster
	dir      string
	jobs     *nomad.Client
	services *consul.Client
}

// commands are the blocks of them in Markdown.
var commands = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestInstalledClusterLosesAManagement: two management processes are there after the
// installation. One of them takes a bundle and goes, with its node and all that was on it. A
// replica of that bundle starts on a node that has nothing yet, and answers from there; another
// bundle is deployed, and taken back. All is lost in the end, and comes back from the backup that
// a job on Nomad has made.
func TestInstalledClusterLosesAManagement(t *testing.T) {
	c := startInstalled(t)
	fresh := c.eligible(2, false)
	c.readme()
	management := c.ready("topsail-web", 2)
	c.ready("topsail-gateway", 1)

	first, second := management[0], management[1]
	api := func(s *consul.AgentService) string {
		return fmt.Sprintf("http://%s:%d/api/v1", s.Address, s.Port)
	}
	one, other := c.sum(), c.sum("1000")
	c.ask(api(first), "POST", "/apps", `{"name":"sum","input_type":"doubles","latency_slo_micros":500000,"default_output":"-1"}`, 201)
	c.ask(api(first), "POST", "/artifacts", string(one), 201)
	c.ask(api(second), "POST", "/models/sum/versions", `{"version":"1","bundle":"`+digestOf(t, one)+`"}`, 201)
	c.ask(api(second), "PUT", "/apps/sum/links/sum", "", 200)
	c.answers(42)
	backup := c.backsUp()

	rest := c.nodeOf(second.Meta["alloc_id"])
	c.eligible(rest, false) // so that what starts from now on starts on the fresh node
	c.powerOff(c.nodeOf(first.Meta["alloc_id"]))
	if err := os.RemoveAll(c.work()); err != nil { // the nodes of this test share the machine's
		t.Fatal(err)
	}
	c.eligible(2, true)
	c.movesTo(fresh, "1")
	c.unpacked(digestOf(t, one))
	c.answers(42)

	c.eligible(rest, true)
	c.ask(api(second), "POST", "/artifacts", string(other), 201)
	c.ask(api(second), "POST", "/models/sum/versions", `{"version":"2","bundle":"`+digestOf(t, other)+`","replicas":2}`, 201)
	c.serves(api(second), "2")
	c.answers(1042)
	c.until("a new management process that has the bundle of the one that is gone", func() error {
		for _, s := range c.ready("topsail-web", 2) { // which may still name the one that is gone
			resp, err := http.Get(api(s) + "/artifacts/" + digestOf(t, one))
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode != 200 || s.Meta["alloc_id"] == first.Meta["alloc_id"] {
				return fmt.Errorf("%s: %s", s.Meta["alloc_id"], resp.Status)
			}
		}
		return nil
	})

	c.ask(api(second), "POST", "/models/sum/rollback", "", 200)
	c.serves(api(second), "1")
	c.answers(42)
	c.losesAndRestores(api(second), backup, digestOf(t, one))
}

func startInstalled(t *testing.T) *installed {
	dir, err := os.MkdirTemp("", "topsail-install")
	require.NoError(t, err)
	c := &installed{T: t, dir: dir}
	t.Cleanup(func() {
		if c.Cluster != nil {
			c.Stop()
		}
		servers.Sweep(dir)
		os.RemoveAll(dir)
	})
	for _, pkg := range []string{"cmd/topsail", "examples/gosum"} {
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, filepath.Base(pkg)), "github.com/topsail-serving/topsail/"+pkg).CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", pkg, err, out)
		}
	}
	ports, err := servers.FreePortsForAll()
	require.NoError(t, err)
	if c.Cluster, err = servers.NewCluster(servers.Options{Dir: dir, Ports: ports, Clients: 3, HeartbeatGrace: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, c.Start(t.Context()))
	if c.jobs, err = nomad.NewClient(&nomad.Config{Address: "http://" + c.Nomad.Addr, Namespace: "topsail"}); err != nil {
		t.Fatal(err)
	}
	if c.services, err = consul.NewClient(&consul.Config{Address: c.Consul.Addr}); err != nil {
		t.Fatal(err)
	}
	return c
}

// readme runs the commands of the installation. What this one machine has in place of
// several is in the functions: the addresses of its servers, and ports that Nomad chooses.
func (c *installed) readme() {
	c.Helper()
	text, err := os.ReadFile("../../nomad/README.md")
	require.NoError(c, err)
	section, _, _ := strings.Cut(string(text), "\n## Addresses")
	script := `set -eu
topsail() { command "$DIR/topsail" "$@"; }
nomad() {
  if [ "$1 $2" != "job run" ]; then command nomad "$@"; return; fi
  shift 2
  case "$*" in
  *redis.nomad.hcl|*influxdb.nomad.hcl|*prometheus.nomad.hcl|*grafana.nomad.hcl) return ;; # there are some
  *gateway.nomad.hcl) command nomad job run -var program="$DIR/topsail" -var consul_addr="http://$CONSUL_HTTP_ADDR" -var port=0 "$@" ;;
  *web.nomad.hcl) command nomad job run -var program="$DIR/topsail" -var consul_addr="http://$CONSUL_HTTP_ADDR" -var nomad_addr="$NOMAD_ADDR" -var port=0 "$@" ;;
  *) command nomad job run -var program="$DIR/topsail" -var consul_addr="http://$CONSUL_HTTP_ADDR" -var nomad_addr="$NOMAD_ADDR" \
       -var "env={ TOPSAIL_JOBS_WORK_DIR = \"$DIR/work\" }" "$@" ;;
  esac
}
`
	for _, block := range commands.FindAllStringSubmatch(section, -1) {
		script += strings.NewReplacer("10.0.0.5:6379", c.Redis.Addr, "10.0.0.5:8086", c.InfluxDB.Addr).Replace(block[1])
	}
	binary, err := servers.Binary("nomad")
	require.NoError(c, err)
	cmd := exec.CommandContext(c.Context(), "sh", "-c", script)
	cmd.Dir = "../../nomad"
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "DIR="+c.dir, "HOME="+c.dir,
		"NOMAD_ADDR=http://"+c.Nomad.Addr, "CONSUL_HTTP_ADDR="+c.Consul.Addr)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("%v\n%s", err, out)
	}
	for _, line := range []string{`(?m)^bundles +ok +nodes fetch them from 2 management processes`, `(?m)^deploy +ok +a bundle was ready on node nomad-client-\d after`} {
		if !regexp.MustCompile(line).Match(out) {
			c.Errorf("the doctor does not say %q:\n%s", line, out)
		}
	}
}

func (c *installed) work() string { return filepath.Join(c.dir, "work") }

// eligible lets a client take jobs, or keeps it from that, and returns its id.
func (c *installed) eligible(client int, yes bool) (id string) {
	c.Helper()
	c.until(c.Clients[client].Name, func() error {
		nodes, _, err := c.jobs.Nodes().List(nil)
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if node.Name == c.Clients[client].Name && node.Status == nomad.NodeStatusReady {
				id = node.ID
				_, err := c.jobs.Nodes().ToggleEligibility(id, yes, nil)
				return err
			}
		}
		return errors.New("there is no such node yet")
	})
	return id
}

// nodeOf is the client that an allocation is on.
func (c *installed) nodeOf(alloc string) (client int) {
	c.Helper()
	found, _, err := c.jobs.Allocations().Info(alloc, nil)
	require.NoError(c, err)
	client = slices.IndexFunc(c.Clients, func(s *servers.Server) bool { return s.Name == found.NodeName })
	if client < 0 {
		c.Fatalf("allocation %s is on the node %s, which is none of the test's", alloc, found.NodeName)
	}
	return client
}

// powerOff ends a node with all that runs on it, and its disk.
func (c *installed) powerOff(client int) {
	c.Helper()
	c.Clients[client].Kill()
	c.Agents[client].Kill()
	dir := filepath.Join(c.dir, c.Clients[client].Name)
	servers.Sweep(dir)
	require.NoError(c, os.RemoveAll(dir))
}

// until waits for something that takes a cluster some seconds.
func (c *installed) until(what string, so func() error) {
	c.Helper()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(2 * time.Minute); ; <-again.C {
		err := so()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			c.Fatalf("%s: %v\n%s", what, err, c.story())
		}
	}
}

// story is the end of what the tasks wrote.
func (c *installed) story() string {
	var b strings.Builder
	for _, task := range harness.Tasks(c.dir) {
		fmt.Fprintf(&b, "%s %s %s\n", task.Job, task.Name, task.Executable())
	}
	files, _ := filepath.Glob(filepath.Join(c.dir, "nomad-client-*", "data", "alloc", "*", "alloc", "logs", "*.std*.0"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		fmt.Fprintf(&b, "%s:\n%s\n", filepath.Base(file), text[max(0, len(text)-1500):])
	}
	return b.String()
}

func (c *installed) ready(service string, n int) (list []*consul.AgentService) {
	c.Helper()
	c.until(service, func() error {
		found, _, err := c.services.Health().Service(service, "", true, nil)
		if err != nil || len(found) != n {
			return errors.Join(err, fmt.Errorf("%d are ready, not %d", len(found), n))
		}
		list = nil
		for _, one := range found {
			list = append(list, one.Service)
		}
		return nil
	})
	return list
}

// sum is a bundle of the example in Go, which adds something to each sum.
func (c *installed) sum(more ...string) []byte {
	c.Helper()
	program, err := os.ReadFile(filepath.Join(c.dir, "gosum"))
	require.NoError(c, err)
	var archive bytes.Buffer
	m := &bundle.Manifest{Runtime: "command", Command: append([]string{"./gosum"}, more...), InputType: serving.Doubles}
	require.NoError(c, bundle.Write(&archive, m, fstest.MapFS{"gosum": {Data: program, Mode: 0o755}}))
	return archive.Bytes()
}

func digestOf(t *testing.T, archive []byte) string {
	t.Helper()
	digest, err := bundle.Digest(bytes.NewReader(archive))
	require.NoError(t, err)
	return digest
}

// ask asks the management API, whose caller repeats what comes too early.
func (c *installed) ask(api, method, path, body string, want int) (answer []byte) {
	c.Helper()
	kind := "application/json"
	if path == "/artifacts" {
		kind = "application/zip"
	}
	c.until(method+" "+path, func() error {
		req, err := http.NewRequestWithContext(c.Context(), method, api+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", kind)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if answer, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode != want {
			if err = fmt.Errorf("%s: %s", resp.Status, answer); resp.StatusCode == http.StatusBadRequest {
				c.Fatalf("%s %s: %v", method, path, err)
			}
		}
		return err
	})
	return answer
}

// serves waits until a version has the traffic.
func (c *installed) serves(api, version string) {
	c.Helper()
	c.until("version "+version+" serves", func() error {
		var model struct{ Serving string }
		if err := json.Unmarshal(c.ask(api, "GET", "/models/sum", "", 200), &model); err != nil {
			return err
		}
		if model.Serving != version {
			return fmt.Errorf("%q serves", model.Serving)
		}
		return nil
	})
}

// answers waits for what a model says to 1, 2 and 39, by whichever gateway answers: Consul may
// still name one that is gone.
func (c *installed) answers(want float64) {
	c.Helper()
	c.until(fmt.Sprintf("the prediction %v", want), func() (err error) {
		for _, gateway := range c.ready("topsail-gateway", 1) {
			if err = predicts(gateway, want); err == nil {
				return nil
			}
		}
		return err
	})
}

// predicts has a gateway answer with an output of a model, which no cache has.
func predicts(gateway *consul.AgentService, want float64) error {
	resp, err := http.Post(fmt.Sprintf("http://%s:%d/sum/predict", gateway.Address, gateway.Port), "application/json", strings.NewReader(`{"input":[1,2,39],"no_cache":true}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var got struct {
		Output  float64 `json:"output"`
		Default bool    `json:"default"`
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err == nil && (got.Default || got.Output != want) {
		err = errors.New(string(text))
	}
	return err
}

// movesTo has the one replica of a version start on a node: where it lives elsewhere, it is
// stopped. When it is ready, no other one is left that could answer.
func (c *installed) movesTo(node, version string) {
	c.Helper()
	job := jobs.ID(serving.ModelID{Model: "sum", Version: version})
	c.until("a replica of version "+version+" on the fresh node", func() error {
		allocs, _, err := c.jobs.Jobs().Allocations(job, false, nil)
		if err != nil {
			return err
		}
		there := ""
		for _, alloc := range allocs {
			gone := alloc.ClientStatus != nomad.AllocClientStatusRunning && alloc.ClientStatus != nomad.AllocClientStatusPending
			switch {
			case gone:
			case alloc.NodeID == node:
				there = alloc.ID
			default:
				_, err := c.jobs.Allocations().Stop(&nomad.Allocation{ID: alloc.ID}, nil)
				return errors.Join(err, fmt.Errorf("%s of %s is on another node", alloc.ID, job))
			}
		}
		return c.readyReplica(there)
	})
}

// readyReplica says why the replica of an allocation is not ready, or nil.
func (c *installed) readyReplica(alloc string) error {
	found, _, err := c.services.Health().Service("topsail-sidecar", "", true, nil)
	if err == nil && !slices.ContainsFunc(found, func(e *consul.ServiceEntry) bool { return alloc != "" && strings.Contains(e.Service.ID, alloc) }) {
		err = fmt.Errorf("the replica of allocation %q is not ready", alloc)
	}
	return err
}

// unpacked sees that the node has fetched a bundle.
func (c *installed) unpacked(digest string) {
	c.Helper()
	if list, err := filepath.Glob(filepath.Join(c.work(), "bundles", strings.TrimPrefix(digest, "sha256:")+"*")); err != nil || len(list) == 0 {
		c.Errorf("no node has unpacked %s, error %v", digest, err)
	}
}
