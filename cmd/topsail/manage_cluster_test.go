//go:build system

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
	"github.com/topsail-serving/topsail/web/api"
)

// managedCluster is the real servers with access control, and Topsail's roles as processes
// beside them. What clients and operators reach has certificates, and nobody gets in without a
// key. Bundles are in an object store.
type managedCluster struct {
	*servers.Cluster
	t     *testing.T
	dir   string          // short: the paths of sockets begin with it
	s3    *servers.Server // has the bundles
	root  *operator       // of the management side with a certificate
	plain *operator       // the same person, at the one without
	edge  string          // URL of the gateway
	tls   []string        // flags
	token string          // of Nomad, for everything
	roles map[string]*role
}

// consulRoot is the management token of Consul.
const consulRoot = "7a1c9f3e-0b52-4a57-9d5c-6a2f1f0f7b11"

// role is a process of Topsail.
type role struct {
	cmd    *exec.Cmd
	exited chan error
	out    journal.Journal
}

// newCluster starts everything.
func newCluster(t *testing.T) *managedCluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "topsail-manage")
	require.NoError(t, err)
	c := &managedCluster{t: t, dir: dir, roles: map[string]*role{}}
	t.Cleanup(c.stop)
	ports, err := servers.FreePortsForAll()
	require.NoError(t, err)
	if c.Cluster, err = servers.NewCluster(servers.Options{Dir: dir, Ports: ports, Clients: 1, ACL: consulRoot}); err != nil {
		t.Fatal(err)
	}
	if c.s3, err = servers.S3(filepath.Join(dir, "s3"), ports.Tasks+320); err != nil {
		t.Fatal(err)
	}
	c.tls, c.root = encrypted(t, dir)
	t.Setenv("SSL_CERT_FILE", filepath.Join(dir, "ca.pem")) // Consul's agent asks processes whether they are well
	require.NoError(t, errors.Join(c.Start(t.Context()), c.s3.Start(t.Context())))
	c.controlAccess()
	c.runRoles(ports.Tasks + 300)
	return c
}

// controlAccess gives the jobs of models what nomad/policies says, by its commands.
func (c *managedCluster) controlAccess() {
	c.t.Helper()
	api, err := nomad.NewClient(&nomad.Config{Address: "http://" + c.Nomad.Addr})
	require.NoError(c.t, err)
	defer api.Close()
	token, _, err := api.ACLTokens().Bootstrap(nil)
	require.NoError(c.t, err)
	c.token = token.SecretID
	text, err := os.ReadFile("../../nomad/policies/README.md")
	require.NoError(c.t, err)
	script := "set -eu\n"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	binary, err := servers.Binary("nomad")
	require.NoError(c.t, err)
	cmd := exec.CommandContext(c.t.Context(), "sh", "-c", script)
	cmd.Dir = "../../nomad/policies"
	cmd.Env = append(os.Environ(), c.access()...)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
}

// access is where the servers are and how to get in, as variables.
func (c *managedCluster) access() []string {
	return []string{
		"CONSUL_HTTP_ADDR=" + c.Consul.Addr, "CONSUL_HTTP_TOKEN=" + consulRoot,
		"NOMAD_ADDR=http://" + c.Nomad.Addr, "NOMAD_TOKEN=" + c.token,
	}
}

// runRoles starts the roles, on addresses from the port on.
func (c *managedCluster) runRoles(port int) {
	c.t.Helper()
	addr := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", port+n) }
	keys, tls := c.tls[len(c.tls)-2:], c.tls[:len(c.tls)-2]
	rootFile := testca.Write(c.t, c.dir, "root.key", []byte(rootKey))
	c.edge = "https://" + addr(0)
	jobs := []string{"--jobs-namespace", "topsail", "--jobs-work-dir", filepath.Join(c.dir, "work")}
	bundles := []string{"--web-bundles", "s3://bundles/managed?region=us-east-1&endpoint=http://" + c.s3.Addr}
	c.run("scheduler", "first", slices.Concat(tls, jobs, []string{"--scheduler-name", "first"})...)
	c.run("scheduler", "second", slices.Concat(tls, jobs, []string{"--scheduler-name", "second"})...)
	c.run("gateway", "edge", slices.Concat(tls, []string{"--gateway-addr", addr(0), "--gateway-keys-file", keys[1]})...)
	c.run("web", "web", slices.Concat(tls, keys, jobs, bundles, []string{"--web-addr", addr(1), "--web-gateway-key-file", rootFile})...)
	c.run("web", "plain", slices.Concat(keys, jobs, bundles, []string{"--web-addr", addr(2)})...)
	c.root = c.root.with("TOPSAIL_ADMIN_URL=https://"+addr(1), "TOPSAIL_URL="+c.edge)
	c.plain = c.root.with("TOPSAIL_ADMIN_URL=http://" + addr(2))
	for _, url := range []string{"https://" + addr(0), "https://" + addr(1), "http://" + addr(2)} {
		wait.Until(c.t, "answer at "+url, func() bool {
			response, err := c.root.client.Get(url + "/health")
			if err == nil {
				response.Body.Close()
			}
			return err == nil && response.StatusCode == http.StatusOK
		})
	}
}

// run starts a role. Management alone gets the keys of the object store.
func (c *managedCluster) run(command, name string, flags ...string) {
	c.t.Helper()
	p := &role{exited: make(chan error, 1)}
	p.cmd = exec.Command(programs.topsail, slices.Concat([]string{
		command, "--consul-announce", "--redis-addrs", c.Redis.Addr, "--influxdb-url", "http://" + c.InfluxDB.Addr,
		"--data-dir", filepath.Join(c.dir, name), "--ops-addr", "127.0.0.1:0", "--log-format", "json",
	}, flags)...)
	p.cmd.Env = append(os.Environ(), c.access()...)
	if command == "web" {
		p.cmd.Env = append(p.cmd.Env, "AWS_ACCESS_KEY_ID="+servers.S3AccessKey, "AWS_SECRET_ACCESS_KEY="+servers.S3SecretKey)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	require.NoError(c.t, p.cmd.Start())
	go func() { p.exited <- p.cmd.Wait() }()
	c.roles[name] = p
}

// end asks a role to stop, and waits until it has.
func (c *managedCluster) end(name string) {
	c.t.Helper()
	p := c.roles[name]
	delete(c.roles, name)
	p.cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-p.exited:
		if err != nil {
			c.t.Errorf("%s ended with %v:\n%s", name, err, p.out.String())
		}
	case <-time.After(patience):
		p.cmd.Process.Kill()
		c.t.Errorf("%s did not end:\n%s", name, p.out.String())
	}
}

// stop leaves nothing behind.
func (c *managedCluster) stop() {
	for name, p := range c.roles {
		if c.t.Failed() {
			c.t.Logf("%s has said\n%s", name, p.out.String())
		}
		p.cmd.Process.Kill()
	}
	if c.Cluster != nil {
		c.Stop()
	}
	if c.s3 != nil {
		c.s3.Stop()
	}
	servers.Sweep(c.dir)
	os.RemoveAll(c.dir)
}

// TestAClusterIsManaged is a day of an operator of a cluster.
func TestAClusterIsManaged(t *testing.T) {
	c := newCluster(t)
	file := filepath.Join(c.dir, "topsail.toml")
	config := strings.Replace(sumConfig(c.dir, quoted(announcing()[1:]...)), `version = "1"`, "version = \"1\"\nreplicas = 2", 1)
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	c.root.do("apply", "-f", file, "--yes")
	c.root.ready("sum:1", 2)
	c.root.answers("sum", "[1, 2.5]", "3.5")
	t.Run("Processes", c.seesProcesses)
	t.Run("Replicas", c.handlesReplicas)
	t.Run("Bundles", c.deploysBundles)
	t.Run("Failover", c.failsOver)
	t.Run("Hang", c.restartsHung)
	t.Run("Hosts", c.hostsModels)
	t.Run("Services", c.callsServices)
	t.Run("Models", c.streamsModels)
	t.Run("Traffic", c.seesTraffic)
	t.Run("Lead", c.handsOver)
	t.Run("End", c.takesAway)
}

// of is the operator in a test of its own.
func (o *operator) of(t *testing.T) *operator {
	other := *o
	other.t = t
	return &other
}

// seesProcesses finds all roles and servers, and who leads.
func (c *managedCluster) seesProcesses(t *testing.T) {
	o := c.root.of(t)
	var seen api.Cluster
	defer func() {
		if t.Failed() {
			t.Logf("it shows %+v", seen)
		}
	}()
	wait.Until(t, "whole cluster on its page", func() bool {
		seen = get[api.Cluster](o, "/cluster")
		return len(seen.Processes) == 5 && len(seen.Servers) >= 4 && leaderOf(seen) != "" &&
			!slices.ContainsFunc(seen.Processes, func(p api.Process) bool { return p.State != "ok" }) &&
			!slices.ContainsFunc(seen.Servers, func(s check.Finding) bool { return s.State != check.OK && s.Name != "last backup" })
	})
	var roles []string
	for _, p := range seen.Processes {
		roles = append(roles, p.Role)
	}
	slices.Sort(roles)
	if want := []string{"gateway", "scheduler", "scheduler", "web", "web"}; !slices.Equal(roles, want) || seen.Mode != "cluster" {
		t.Errorf("the cluster is %+v", seen)
	}
	states := map[string]string{}
	for _, s := range seen.Servers {
		states[s.Name] = string(s.State)
	}
	for _, name := range []string{"redis", "consul", "nomad", "influxdb"} {
		if states[name] != "ok" {
			t.Errorf("%s is %q; the servers are %+v", name, states[name], seen.Servers)
		}
	}
	if led := get[api.SchedulerStatus](o, "/scheduler").Leader; led != leaderOf(seen) {
		t.Errorf("%q leads the cluster, and %q the schedulers", leaderOf(seen), led)
	}
}

// leaderOf is who leads, if just one does.
func leaderOf(c api.Cluster) (name string) {
	for _, p := range c.Processes {
		if p.Leader && name != "" {
			return ""
		} else if p.Leader {
			name = p.Name
		}
	}
	return name
}

// handlesReplicas sets their number, restarts one, drains another, and reads their output.
func (c *managedCluster) handlesReplicas(t *testing.T) {
	o := c.root.of(t)
	before := o.ready("sum:1", 2)
	restarted, drained := before[0], before[1]
	for _, r := range before {
		if r.Node == "" || r.Allocation == "" || r.Since.IsZero() {
			t.Errorf("it is not known where and since when it runs: %+v", r)
		}
	}
	if out := o.do("logs", restarted.ID); !strings.Contains(out, "the model starts\n") {
		t.Errorf("it has printed\n%s", out)
	}
	if out := o.do("logs", restarted.ID, "--stream", "sidecar"); !strings.Contains(out, `"msg"`) || strings.Contains(out, "the model starts") {
		t.Errorf("its sidecar has logged\n%s", out)
	}
	wait.Until(t, "what it uses", func() bool {
		r := get[api.Replica](o, "/replicas/"+restarted.ID)
		return r.Memory > 1<<20 && r.CPU < 64
	})
	o.do("version", "create", "crash:1", "--input-type", "doubles", "--replicas", "1", "--", "sh", "-c", "echo 'no weights here' >&2; echo 'INFO bye' >&2; exit 3")
	wait.Until(t, "why it fails", func() bool {
		return slices.ContainsFunc(o.replicas("crash:1"), func(r api.Replica) bool { return strings.HasSuffix(r.Reason, "exit code 3: no weights here") })
	})
	o.do("model", "delete", "crash", "--yes")
	o.do("replica", "restart", restarted.ID)
	wait.Until(t, "second start in the log", func() bool {
		return strings.Count(o.do("logs", restarted.ID, "--stream", "stdout"), "the model starts\n") == 2
	})
	wait.Until(t, "replica that was restarted", func() bool {
		r := get[api.Replica](o, "/replicas/"+restarted.ID)
		return r.State == "ready" && r.Restarts == 1
	})
	o.do("replica", "drain", drained.ID)
	wait.Until(t, "other replica in the drained one's place", func() bool {
		all := o.replicas("sum:1")
		return len(all) == 2 && !slices.ContainsFunc(all, func(r api.Replica) bool { return r.ID == drained.ID || r.State != "ready" })
	})
	if status, text := o.send(http.MethodPut, "/models/sum/versions/1/scale", `{"replicas": 1}`); status != http.StatusOK {
		t.Errorf("status %d: %s", status, text)
	}
	o.ready("sum:1", 1)
	decided := list[struct {
		Model, Rule, Reason, Leader, Outcome string
		From, To                             int
	}](o, "/decisions?model=sum")
	if len(decided) != 2 || decided[0].From != 2 || decided[0].To != 1 || decided[1].From != 0 || decided[1].To != 2 {
		t.Fatalf("the scheduler decided %+v", decided)
	}
	for _, d := range decided {
		if d.Rule == "" || d.Reason == "" || d.Outcome == "" || d.Leader == "" {
			t.Errorf("the decision does not say all: %+v", d)
		}
	}
	if out := o.do("decision", "list"); strings.Count(out, "sum:1") != 2 {
		t.Errorf("the table of decisions is\n%s", out)
	}
}

// deploysBundles has nodes fetch bundles, by way of the management processes that Consul names.
func (c *managedCluster) deploysBundles(t *testing.T) {
	o := c.plain.of(t)
	o.do("deploy", "bundled", "--bundle", summing(t), "--app", "bundled", "--slo", "2s", "--default", "-1")
	o.answers("bundled", "[20, 22.5]", "42.5")
	minor, err := exec.Command("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").Output()
	require.NoError(t, err)
	manifest := fmt.Sprintf(`{"runtime": "python", "python": %q, "entry": "loud:predict", "input_type": "strings", "example": "hey"}`, strings.TrimSpace(string(minor)))
	loud := pack(t, manifest, map[string][]byte{"loud.py": []byte("def predict(texts):\n    return [t.upper() for t in texts]\n")})
	o.do("deploy", "loud", "--bundle", loud, "--app", "loud", "--slo", "2s", "--default", "none")
	o.answers("loud", `"hey"`, `"HEY"`)
	job := get[api.Job](o, "/models/loud/versions/1/job")
	if job.Kind != "nomad" || !strings.Contains(job.Text, "--management") || strings.Contains(job.Text, "/api/v1/artifacts/") || strings.Contains(job.Text, servers.S3SecretKey) {
		t.Errorf("the job is\n%s", job.Text)
	}
	said := o.do("logs", o.ready("loud:1", 1)[0].ID)
	if !regexp.MustCompile(`fetching the bundle from https?://127\.0\.0\.1:\d+/api/v1/artifacts/sha256:`).MatchString(said) || strings.Contains(said, servers.S3SecretKey) {
		t.Errorf("the replica says\n%s", said)
	}
	wait.Until(t, "token of the replica's own for Consul", func() bool { return c.identityOf("loud:1") })
	for _, by := range []*operator{o, c.root.of(t)} {
		by.sendsOn(list[api.Artifact](o, "/artifacts")[0].Digest, c.s3.Addr)
	}
}

// callsServices deploys what others run, as Consul knows it: one instance, and another one in its place.
func (c *managedCluster) callsServices(t *testing.T) {
	o := c.root.of(t)
	instance := func(total string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Method == http.MethodPost {
				fmt.Fprintf(w, `{"outputs": [{"name": "total", "datatype": "FP32", "shape": [1, 1], "data": [%s]}]}`, total)
				return
			}
			fmt.Fprint(w, `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}]}`)
		}))
		t.Cleanup(s.Close)
		return s
	}
	consul := func(path, body string) {
		request, err := http.NewRequest(http.MethodPut, "http://"+c.Consul.Addr+"/v1/agent/service/"+path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("X-Consul-Token", consulRoot)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		if response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, response.Status)
		}
	}
	register := func(id string, s *httptest.Server) {
		host, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
		consul("register", fmt.Sprintf(`{"Name": "others", "ID": %q, "Address": %q, "Port": %s, "Check": {"HTTP": %q, "Interval": "1s", "Status": "passing"}}`, id, host, port, s.URL))
	}
	first, second := instance("1.5"), instance("2.5")
	register("first", first)
	o.do("deploy", "theirs", "--service", "others", "--service-protocol", "oip", "--input-type", "doubles", "--app", "theirs", "--slo", "2s", "--default", "-1")
	if id := o.ready("theirs:1", 1)[0].ID; !strings.HasPrefix(id, "theirs:1@"+strings.TrimPrefix(first.URL, "http://")+"@") {
		t.Errorf("the instance is %s", id)
	}
	o.answers("theirs", "[1, 2]", "1.5")
	wait.Until(t, "that the version serves", func() bool {
		return strings.Contains(o.do("version", "list", "theirs"), "current, serving")
	})
	register("second", second)
	consul("deregister/first", "")
	o.answers("theirs", "[3, 4]", "2.5")
	wait.Until(t, "the other instance alone", func() bool {
		all := o.replicas("theirs:1")
		return len(all) == 1 && all[0].State == "ready" && strings.Contains(all[0].ID, strings.TrimPrefix(second.URL, "http://"))
	})
	if jobs := o.do("decision", "list"); strings.Contains(jobs, "theirs:1") {
		t.Errorf("the scheduler decided\n%s", jobs)
	}
}

// sendsOn asks for a bundle as a node does, without a key, and follows to where it is sent.
func (o *operator) sendsOn(digest, store string) {
	o.t.Helper()
	stays := *o.client
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := stays.Get(o.setting("TOPSAIL_ADMIN_URL") + "/api/v1/artifacts/" + digest + "/content?redirect=true")
	require.NoError(o.t, err)
	response.Body.Close()
	to, err := response.Location()
	if err != nil || to.Host != store || to.Query().Get("X-Amz-Expires") != "900" || to.Query().Get("X-Amz-Signature") == "" {
		o.t.Fatalf("%s to %v, error %v", response.Status, to, err)
	}
	fetch := func(url string) int {
		response, err := http.Get(url)
		require.NoError(o.t, err)
		defer response.Body.Close()
		if got, err := bundle.Digest(response.Body); response.StatusCode == http.StatusOK && (err != nil || got != digest) {
			o.t.Errorf("it is %s, error %v", got, err)
		}
		return response.StatusCode
	}
	if status := fetch(to.String()); status != http.StatusOK {
		o.t.Errorf("the address is answered by %d", status)
	}
	longer := to.Query()
	longer.Set("X-Amz-Expires", "9000")
	for name, query := range map[string]string{"without a signature": "", "for longer": longer.Encode()} {
		other := *to
		if other.RawQuery = query; fetch(other.String()) != http.StatusForbidden {
			o.t.Errorf("the address %s is not refused", name)
		}
	}
}

// identityOf says whether Nomad got a token of Consul for the container of a version, by which
// its template reads where management is.
func (c *managedCluster) identityOf(version string) bool {
	for _, r := range c.root.replicas(version) {
		found, err := filepath.Glob(filepath.Join(c.dir, "nomad-client-1", "data", "alloc", r.Allocation+"*", "container", "secrets", "consul_token"))
		if err == nil && len(found) == 1 {
			return true
		}
	}
	return false
}

// failsOver takes the replicas of a version that has served: the one before it answers, and
// says so, until the version has one again.
func (c *managedCluster) failsOver(t *testing.T) {
	o, may := c.root.of(t), filepath.Join(c.dir, "may-run")
	require.NoError(t, os.WriteFile(may, nil, 0o600))
	o.do("app", "create", "turns", "--input-type", "doubles", "--slo", "2s", "--default", "-1")
	o.do("version", "create", "turns:1", "--input-type", "doubles", "--", programs.gosum)
	o.do("app", "link", "turns", "turns")
	o.answers("turns", "[0.5]", "0.5")
	o.do("version", "create", "turns:2", "--input-type", "doubles", "--", "sh", "-c", "test -e "+may+" && exec "+programs.gosum+" 1000")
	o.answers("turns", "[0.5]", "1000.5")
	wait.Until(t, "version that serves", func() bool { return get[api.Model](o, "/models/turns").Serving == "2" })

	says := func() (output float64, failover []string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.edge+"/turns/predict", strings.NewReader(`{"input": [2], "no_cache": true}`))
		require.NoError(t, err)
		o.show(request)
		response, err := o.client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		var got struct {
			Output   float64
			Failover []string
		}
		if err := json.NewDecoder(response.Body).Decode(&got); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s, error %v", response.Status, err)
		}
		return got.Output, got.Failover
	}
	if output, failover := says(); output != 1002 || failover != nil {
		t.Errorf("before: %v, %v", output, failover)
	}
	require.NoError(t, os.Remove(may))
	o.do("replica", "restart", o.ready("turns:2", 1)[0].ID)
	wait.Until(t, "answer of the version before", func() bool {
		output, failover := says()
		return output == 2 && slices.Equal(failover, []string{"turns:2"})
	})
	wait.Until(t, "alarm", func() bool {
		return slices.ContainsFunc(get[api.Cluster](o, "/cluster").Alarms, func(a check.Finding) bool { return strings.Contains(fmt.Sprint(a), "turns:2") })
	})
	require.NoError(t, os.WriteFile(may, nil, 0o600))
	wait.Until(t, "answer of the version again", func() bool {
		output, failover := says()
		return output == 1002 && failover == nil
	})
}

// restartsHung has a model that keeps the interpreter's lock for good.
func (c *managedCluster) restartsHung(t *testing.T) {
	o := c.plain.of(t)
	manifest := fmt.Sprintf(`{"runtime": "python", "python": %q, "entry": "model:predict", "input_type": "strings", "example": "hey"}`, pythonMinor(t))
	hanging := pack(t, manifest, map[string][]byte{"model.py": []byte(hangingModel)})
	o.do("deploy", "hanging", "--bundle", hanging, "--app", "hanging", "--slo", "2s", "--default", "none")
	for i := range 4 { // so that it is known what it takes
		o.answers("hanging", fmt.Sprintf(`"a%d"`, i), fmt.Sprintf(`"A%d"`, i))
	}
	id := o.ready("hanging:1", 1)[0].ID
	o.answers("hanging", `"gil"`, `"none"`)
	wait.Until(t, "replica that was restarted", func() bool {
		r := get[api.Replica](o, "/replicas/"+id)
		return r.State == "ready" && r.Restarts > 0
	})
	o.answers("hanging", `"again"`, `"AGAIN"`)
}

// hostsModels has two replicas of a host fetch and hold models.
func (c *managedCluster) hostsModels(t *testing.T) {
	o := c.plain.of(t)
	o.do("version", "create", "small:1", "--host-memory", "64", "--replicas", "2", "--env", "PYTHONPATH="+sdk(t), "--", "python3", "-m", "topsail", "host")
	for i := range 4 {
		name := fmt.Sprint("times", i)
		o.do("deploy", name, "--bundle", scaled(t, float64(i), 1), "--hosted-by", "small", "--app", name, "--slo", "2s", "--default", "none")
		o.answers(name, "[10.5]", strconv.FormatFloat(float64(i)*10.5, 'f', 1, 64))
	}
	wait.Until(t, "version that serves", func() bool {
		return strings.Contains(string(o.fetch("/models/times3/versions/1")), `"serving":true`)
	})
	if jobs := list[api.Replica](o, "/replicas?model=times3"); len(jobs) != 0 {
		t.Errorf("a model that a host holds has replicas of its own: %+v", jobs)
	}
	o.do("version", "scale", "small:1", "1")
	o.ready("small:1", 1)
	for i := range 4 { // by the one that stayed
		o.answers(fmt.Sprint("times", i), "[20.5]", strconv.FormatFloat(float64(i)*20.5, 'f', 1, 64))
	}
}

// seesTraffic asks, and finds the answers counted.
func (c *managedCluster) seesTraffic(t *testing.T) {
	o := c.root.of(t)
	rate := func(app string) float64 {
		for _, a := range get[api.TrafficNow](o, "/traffic").Apps {
			if a.App == app {
				return a.Rate
			}
		}
		return 0
	}
	n := 0
	wait.Until(t, "app in the traffic", func() bool {
		n++
		o.do("predict", "sum", fmt.Sprintf("[%d]", n))
		return rate("sum") > 0
	})
	if out := o.do("app", "traffic"); !strings.Contains(out, "sum") {
		t.Errorf("the table of traffic is\n%s", out)
	}
	trial := struct {
		Status int
		Stages []struct{ Stage string }
	}{}
	status, text := o.send(http.MethodPost, "/apps/sum/try", `{"input": [1, 2]}`)
	if err := json.Unmarshal(text, &trial); err != nil || status != http.StatusOK || trial.Status != http.StatusOK || len(trial.Stages) < 3 {
		t.Errorf("a trial ends with status %d: %s", status, text)
	}
}

// handsOver stops the leader.
func (c *managedCluster) handsOver(t *testing.T) {
	o := c.root.of(t)
	var leader string
	wait.Until(t, "leader", func() bool {
		leader = get[api.SchedulerStatus](o, "/scheduler").Leader
		return leader != ""
	})
	if c.roles[leader] == nil {
		t.Fatalf("%q leads", leader)
	}
	c.end(leader)
	wait.Until(t, "other leader", func() bool {
		now := get[api.SchedulerStatus](o, "/scheduler").Leader
		return now != "" && now != leader
	})
	o.do("version", "scale", "sum:1", "2") // and it does what it is there for
	o.ready("sum:1", 2)
}

// takesAway leaves nothing that runs.
func (c *managedCluster) takesAway(t *testing.T) {
	o := c.root.of(t)
	for _, name := range []string{"bundled", "loud", "turns", "hanging", "times0", "times1", "times2", "times3"} {
		o.do("app", "delete", name, "--yes")
		o.do("model", "delete", name, "--yes")
	}
	o.do("model", "delete", "small", "--yes")
	empty := filepath.Join(t.TempDir(), "topsail.toml")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	o.do("apply", "-f", empty, "--prune", "--yes")
	wait.Until(t, "end of all replicas", func() bool { return len(list[api.Replica](o, "/replicas")) == 0 })
	for _, name := range []string{"edge", "web", "plain"} {
		c.end(name)
	}
}
