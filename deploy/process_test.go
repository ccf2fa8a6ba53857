package deploy

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
)

// programs are built once: topsail, and containers in Go.
var programs struct{ topsail, gosum, gostages string }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "topsail-deploy")
	if err == nil {
		programs.topsail, programs.gosum = filepath.Join(dir, "topsail"), filepath.Join(dir, "gosum")
		programs.gostages = filepath.Join(dir, "gostages")
		err = build(programs.topsail, "github.com/topsail-serving/topsail/cmd/topsail", programs.gosum, "github.com/topsail-serving/topsail/examples/gosum", programs.gostages, "github.com/topsail-serving/topsail/examples/gostages")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func build(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if out, err := exec.Command("go", "build", "-o", pairs[i], pairs[i+1]).CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", pairs[i+1], err, out)
		}
	}
	return nil
}

// process is a running topsail with what it has said.
type process struct {
	out journal.Journal
}

// start runs topsail until the test ends, with nothing behind it: no Redis, no
// Consul, no Nomad, no InfluxDB.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{}
	cmd := exec.Command(programs.topsail, append(args, "--data-dir", t.TempDir())...)
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	cmd.Env = append(os.Environ(), "TOPSAIL_REDIS_ADDRS=127.0.0.1:1", "TOPSAIL_INFLUXDB_URL=http://127.0.0.1:1",
		"CONSUL_HTTP_ADDR=127.0.0.1:1", "NOMAD_ADDR=http://127.0.0.1:1")
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(15 * time.Second):
			cmd.Process.Kill()
			t.Errorf("topsail %s did not end; it said:\n%s", args[0], p.out.String())
		}
	})
	return p
}

const catalog = `
[[app]]
name = "sum"
input_type = "doubles"
latency_slo_micros = 20000000
models = ["sum"]
policy = { kind = "exp4" }

[[app]]
name = "trial"
input_type = "doubles"
latency_slo_micros = 20000000
models = ["sum"]
policy = { kind = "versions", canary = "2" }

[[model]]
name = "sum"
version = "1"
input_type = "doubles"
command = [%[1]q]
current = true

[[model]]
name = "sum"
version = "2"
input_type = "doubles"
command = [%[1]q]

[[app]]
name = "stages"
input_type = "doubles"
latency_slo_micros = 20000000
default_output = "none"
models = ["stages"]

[[model]]
name = "host"
version = "1"
host.memory_mb = 64
command = ["sleep", "60"]

[[model]]
name = "stages"
version = "1"
input_type = "doubles"
command = [%[2]q]
`

var (
	opsLine = regexp.MustCompile(`http://[0-9.:]+/metrics`)
	askLine = regexp.MustCompile(`http://[0-9.:]+/sum/`)
)

// startLocal runs gateway, sidecar and scheduler in one process, has them asked and
// told how good the answer was, and says where their metrics are.
func startLocal(t *testing.T) (metrics string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "topsail.toml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, catalog, programs.gosum, programs.gostages), 0o600))
	p := start(t, "local", "--config", file, "--gateway-addr", "127.0.0.1:0", "--web-addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0")
	wait.Until(t, "the greeting", func() bool { return strings.Contains(p.out.String(), "Stop with") }, p.out.String)
	app := askLine.FindString(p.out.String())
	exchange(t, app+"predict", `{"input": [1, 2]}`, `"output":3`)
	exchange(t, app+"update", `{"input": [1, 2], "label": 3}`, "Feedback received? 1")
	stages := strings.Replace(app, "/sum/", "/stages/", 1)
	exchange(t, stages+"predict", `{"input": [1, 2]}`, `"output":[5.0,7.0]`)
	exchange(t, stages+"predict", `{"input": [1, -2]}`, "Dropped: stage scale: a number is below zero")
	metrics = opsLine.FindString(p.out.String())
	wait.Until(t, "the host", func() bool { return strings.Contains(fetch(t, metrics), "\ntopsail_host_models{") }, p.out.String)
	asked := 0
	wait.Until(t, "demand and capacity", func() bool {
		asked++ // each question is another one, so that no cache answers it
		exchange(t, app+"predict", fmt.Sprintf(`{"input": [0, %d]}`, asked), fmt.Sprintf(`"output":%d`, asked))
		page := fetch(t, metrics)
		return strings.Contains(page, "\ntopsail_scheduler_demand{") && strings.Contains(page, "\ntopsail_scheduler_capacity{")
	}, p.out.String)
	return metrics
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

// exchange posts a body, and wants something in the answer.
func exchange(t *testing.T, url, body, want string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(answer), want) {
		t.Fatalf("%s: %s, %v; want %s", url, answer, err, want)
	}
}

// streams is for the role that serves them; the others leave it aside.
const streams = `
[[stream]]
name = "sums"
app = "sum"
input = ["in"]
output = "out"
dead_letter = "dead"
broker = "redis"

[[model_stream]]
name = "sums.models"
input = ["updates"]
output = "acknowledgements"
dead_letter = "refused"
broker = "redis"
`

// startRole runs one role of a cluster, and says where its metrics are.
func startRole(t *testing.T, role string, port int) (metrics string) {
	t.Helper()
	ops, file := fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(t.TempDir(), "topsail.toml")
	require.NoError(t, os.WriteFile(file, []byte(streams), 0o600))
	p := start(t, role, "--config", file, "--ops-addr", ops, "--gateway-addr", "127.0.0.1:0", "--web-addr", "127.0.0.1:0",
		"--sidecar-models", `[{"model": "sum", "version": "1", "input_type": "doubles", "batch": {"strategy": "aimd"}}]`)
	wait.Until(t, "the port for operators", func() bool {
		resp, err := http.Get("http://" + ops + "/health/live")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, p.out.String)
	return "http://" + ops + "/metrics"
}

func freePorts(t *testing.T, n int) int {
	t.Helper()
	first, err := servers.FreePorts(n)
	require.NoError(t, err)
	return first
}
