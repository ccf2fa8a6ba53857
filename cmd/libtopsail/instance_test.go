package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// programs are built once: the one that runs processes of models, and a container in Go.
var programs struct{ topsail, gosum string }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "libtopsail-test")
	if err == nil {
		programs.topsail, programs.gosum = filepath.Join(dir, "topsail"), filepath.Join(dir, "gosum")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", dir, "../topsail", "../../examples/gosum").CombinedOutput(); err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// configuration writes a file with an app of two models that sum up; the second adds more, and feedback teaches which is right.
func configuration(t *testing.T, more string) options {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`
[log]
level = "error"

[[app]]
name = "sum"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 30000000
models = ["plain", "more"]
policy = { kind = "epsilon_greedy", epsilon = 0.1 }

[[model]]
name = "plain"
version = "1"
input_type = "doubles"
command = ["sh", "-c", "echo $$ > %[1]s/pid; exec %[2]s"]

[[model]]
name = "more"
version = "1"
input_type = "doubles"
command = [%[2]q, "1"]
%[3]s`, dir, programs.gosum, more)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "topsail.toml"), []byte(text), 0o600))
	return options{config: filepath.Join(dir, "topsail.toml"), dataDir: filepath.Join(dir, "data"), program: programs.topsail, within: time.Minute}
}

// modelOf is the process of a model, which has written its id beside the configuration.
func modelOf(t *testing.T, o options) (pid int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(o.config), "pid"))
	require.NoError(t, err)
	pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

// answered is what an answer says.
type answered struct {
	ID      int64 `json:"query_id"`
	Output  float64
	Default bool
	Batch   []answered `json:"batch_predictions"`
	Trained []any      // the states
}

// ask makes a call whose answer is JSON.
func ask(t *testing.T, method func(app string, body []byte) ([]byte, error), body string) (a answered) {
	t.Helper()
	text, err := method("sum", []byte(body))
	require.NoError(t, err)
	if err := json.Unmarshal(text, &a); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return a
}

func TestAnInstanceAnswersAndLearns(t *testing.T) {
	before := runtime.NumGoroutine()
	o := configuration(t, "")
	i, err := open(o)
	require.NoError(t, err)
	if _, err := open(o); err == nil || !strings.Contains(err.Error(), o.dataDir) {
		t.Errorf("when it is opened a second time: %v", err)
	}
	var calls sync.WaitGroup
	for n := range 8 {
		calls.Go(func() {
			p := ask(t, i.predict, fmt.Sprintf(`{"input": [%d, 2]}`, n))
			if p.Default || p.Output != float64(n+2) && p.Output != float64(n+3) {
				t.Errorf("the sum of %d and 2 is %+v", n, p)
			}
			if l := ask(t, i.feedback, fmt.Sprintf(`{"query_id": %d, "label": %d}`, p.ID, n+2)); l.ID != p.ID || len(l.Trained) == 0 {
				t.Errorf("feedback teaches %+v", l)
			}
		})
	}
	calls.Wait()
	if p := ask(t, i.predict, `{"input_batch": [[1], [2], [3]]}`); len(p.Batch) != 3 {
		t.Errorf("a batch is answered with %+v", p)
	}
	metrics := httptest.NewRecorder()
	i.local.Metrics().Handler().ServeHTTP(metrics, httptest.NewRequest("GET", "/metrics", nil))
	if want := `topsail_feedback_total{app="sum",result="trained"} 8`; !strings.Contains(metrics.Body.String(), want) {
		t.Errorf("the metrics do not have %s", want)
	}
	require.NoError(t, i.close())

	if err := syscall.Kill(modelOf(t, o), 0); err != syscall.ESRCH {
		t.Errorf("the process of the model: %v", err)
	}
	if _, err := i.predict("sum", []byte(`{"input": [1]}`)); err != errClosed {
		t.Errorf("a query after the end: %v", err)
	}
	if err := i.close(); err != errClosed {
		t.Errorf("a second end: %v", err)
	}
	wait.Until(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before }, func() string {
		stacks := make([]byte, 1<<20)
		return string(stacks[:runtime.Stack(stacks, true)])
	})
	again, err := open(o)
	require.NoError(t, err)
	if l := ask(t, again.predict, `{"input": [1, 1]}`); l.Default {
		t.Errorf("when it is opened again: %+v", l)
	}
	require.NoError(t, again.close())
}

// TestCallsThatFail says what to do.
func TestCallsThatFail(t *testing.T) {
	o := configuration(t, "[gateway]\nmax_body_bytes = 100\nmax_batch = 2")
	o.within = 0
	i, err := open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, i.close()) }()
	for _, c := range []struct {
		method    func(app string, body []byte) ([]byte, error)
		app, body string
		says      string
	}{
		{i.predict, "sums", `{"input": [1]}`, "check its spelling"},
		{i.feedback, "", `{"query_id": 1, "label": 1}`, "check its spelling"},
		{i.predict, "sum", ``, "the body is empty"},
		{i.predict, "sum", `{"input": ["a"]}`, "input[0] must be a number"},
		{i.predict, "sum", `{"input_batch": [[1],[2],[3]]}`, "2"},
		{i.predict, "sum", strings.Repeat(" ", 101), "raise gateway.max_body_bytes"},
		{i.feedback, "sum", `{"query_id": 1}`, "label"},
		{i.feedback, "sum", `{"query_id": 1, "label": 1, "label`, "closing"},
	} {
		if answer, err := c.method(c.app, []byte(c.body)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %s, error %v", c.app, c.body, answer, err)
		}
	}
}

// TestWhatCannotBeOpened leaves nothing running, so that a second instance can open the same folder.
func TestWhatCannotBeOpened(t *testing.T) {
	broken := configuration(t, "\n[[model]]\nname = \"broken\"\nversion = \"1\"\ninput_type = \"doubles\"\ncommand = [\"false\"]\n\n[[app]]\nname = \"broken\"\ninput_type = \"doubles\"\nmodels = [\"broken\"]\ndefault_output = \"0\"\nlatency_slo_micros = 1000000\n")
	streaming := configuration(t, "\n[[stream]]\nname = \"sums\"\napp = \"sum\"\ninput = [\"in\"]\noutput = \"out\"\ndead_letter = \"dead\"\nbroker = \"redis\"\naddrs = [\"127.0.0.1:1\"]\n")
	for _, c := range []struct {
		change func(*options)
		says   string
	}{
		{func(o *options) { o.config += ".not" }, "check the path"},
		{func(o *options) { o.program = "/nowhere/topsail" }, "put it on the PATH"},
		{func(*options) {}, "broken:1 has failed: exit status 1"},
		{func(o *options) { *o = streaming }, "take them out of the configuration"},
		{func(o *options) { o.within = time.Nanosecond }, "has not started in time"},
		{func(*options) {}, "broken:1 has failed: exit status 1"},
	} {
		o := broken
		c.change(&o)
		if _, err := open(o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, and not %s", err, c.says)
		}
	}
}
