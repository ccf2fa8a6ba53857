package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// programs are built once: the binary under test and a container in Go.
var programs struct{ topsail, gosum string }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "topsail-test")
	if err == nil {
		programs.topsail, programs.gosum = filepath.Join(dir, "topsail"), filepath.Join(dir, "gosum")
		err = build(programs.topsail, "github.com/topsail-serving/topsail/cmd/topsail", programs.gosum, "github.com/topsail-serving/topsail/examples/gosum")
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

// instance is a running `topsail local`.
type instance struct {
	t       *testing.T
	cmd     *exec.Cmd
	dir     string
	exited  chan error
	gateway string
	out     journal.Journal
}

// start runs `topsail local` on free ports with a configuration, or without a file where
// that is empty, and flags.
func start(t *testing.T, dir, config string, flags ...string) *instance {
	t.Helper()
	in := &instance{t: t, dir: dir, exited: make(chan error, 1)}
	args := []string{"local", "--data-dir", filepath.Join(dir, "data"), "--log-format", "json",
		"--gateway-addr", "127.0.0.1:0", "--web-addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0"}
	if config != "" {
		file := filepath.Join(dir, "topsail.toml")
		require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
		args = append(args, "--config", file)
	}
	in.cmd = exec.Command(programs.topsail, append(args, flags...)...)
	in.cmd.Stdout, in.cmd.Stderr = &in.out, &in.out
	require.NoError(t, in.cmd.Start())
	go func() {
		defer close(in.exited)
		in.exited <- in.cmd.Wait()
	}()
	t.Cleanup(func() {
		in.cmd.Process.Kill()
		for range in.exited { // until it writes nothing more
		}
	})
	return in
}

var curlLine = regexp.MustCompile(`http://([0-9.:]+)/([^/ ]+)/predict`)

// ready waits for the greeting.
func (in *instance) ready() *instance {
	in.t.Helper()
	in.until("the greeting", func() bool { return strings.Contains(in.output(), "Stop with Ctrl-C") })
	in.gateway = curlLine.FindStringSubmatch(in.output())[1]
	return in
}

func (in *instance) output() string { return in.out.String() }

func (in *instance) until(what string, good func() bool) {
	in.t.Helper()
	wait.Until(in.t, what, good, in.output)
}

type answer struct {
	ID          int64 `json:"query_id"`
	Output      any
	Default     bool
	Explanation string `json:"default_explanation"`
}

// ask asks the app that sums up.
func (in *instance) ask(body string) answer { in.t.Helper(); return in.to("sum", body) }

// to asks an app.
func (in *instance) to(app, body string) (a answer) {
	in.t.Helper()
	in.answer(app, body, &a)
	return a
}

// answer asks an app for an answer of any form.
func (in *instance) answer(app, body string, a any) {
	in.t.Helper()
	status, text, err := in.post("/"+app+"/predict", body)
	if err == nil {
		err = json.Unmarshal([]byte(text), a)
	}
	if err != nil || status != http.StatusOK {
		in.t.Fatalf("status %d: %s, %v", status, text, err)
	}
}

// post sends a body and returns the answer's status and text.
func (in *instance) post(path, body string) (status int, text string, err error) {
	request, err := http.NewRequest(http.MethodPost, in.line("Gateway")+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Accept", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return response.StatusCode, string(read), err
}

// line is the address that the greeting has under a name.
func (in *instance) line(name string) string {
	in.t.Helper()
	pattern := regexp.MustCompile(name + ` +(https?://[^ \n]+)`)
	in.until("the greeting", func() bool { return pattern.MatchString(in.output()) })
	return pattern.FindStringSubmatch(in.output())[1]
}

// fetched is a page that is there.
func fetched(t *testing.T, url string) string {
	t.Helper()
	status, text := page(t, url)
	if status != http.StatusOK {
		t.Fatalf("GET %s: status %d: %s", url, status, text)
	}
	return text
}

// page is how a page is answered.
func page(t *testing.T, url string) (status int, text string) {
	t.Helper()
	client := http.Client{Timeout: patience}
	response, err := client.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(read)
}

// stop sends the signal and waits for the end.
func (in *instance) stop(sig os.Signal) error {
	in.t.Helper()
	in.cmd.Process.Signal(sig)
	select {
	case err := <-in.exited:
		return err
	case <-time.After(patience):
		in.t.Fatalf("did not end within %v of %v; output:\n%s", patience, sig, in.output())
		return nil
	}
}

// descendants are the processes that were started for a model, by the folder of
// this test in their environment.
func (in *instance) descendants() []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == in.cmd.Process.Pid {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if bytes.Contains(env, []byte("TOPSAIL_TEST="+in.dir+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sumConfig is an app of a model that sums up, and its one version at the end.
func sumConfig(dir, command string) string {
	return appConfig("sum", "doubles", "-1", 30*time.Second, "sum") + modelConfig("sum", "doubles", command, dir)
}

// appConfig is an app that asks models.
func appConfig(name, takes, fallback string, slo time.Duration, models ...string) string {
	return fmt.Sprintf("\n[[app]]\nname = %q\ninput_type = %q\ndefault_output = %q\nlatency_slo_micros = %d\nmodels = %s\n", name, takes, fallback, slo.Microseconds(), quoted(models...))
}

// modelConfig is the first version of a model, whose command is quoted words.
func modelConfig(name, takes, command, dir string) string {
	return fmt.Sprintf("\n[[model]]\nname = %q\nversion = \"1\"\ninput_type = %q\ncommand = %s\nenv = { TOPSAIL_TEST = %q }\n", name, takes, command, dir)
}

func quoted(words ...string) string {
	b, _ := json.Marshal(words)
	return string(b)
}

func TestItServesAndCtrlCLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	in := start(t, dir, sumConfig(dir, quoted(programs.gosum))).ready()
	first := in.ask(`{"input": [1, 2.5]}`)
	if first.Default || first.Output != 3.5 {
		t.Fatalf("got %+v", first)
	}
	if len(in.descendants()) == 0 {
		t.Fatal("found no process of the model")
	}
	if err := in.stop(os.Interrupt); err != nil {
		t.Errorf("ended with %v; output:\n%s", err, in.output())
	}
	if left := in.descendants(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	again := start(t, dir, sumConfig(dir, quoted(programs.gosum))).ready()
	if second := again.ask(`{"input": [1, 2.5]}`); second.ID <= first.ID {
		t.Errorf("query id %d after a restart is not above %d", second.ID, first.ID)
	}
}

func TestKillLeavesNothingBehind(t *testing.T) {
	for _, command := range []string{
		quoted(programs.gosum),
		quoted("sh", "-c", "sleep 300 & setsid sleep 300 & "+programs.gosum+"; true"),
	} {
		dir := t.TempDir()
		in := start(t, dir, sumConfig(dir, command)).ready()
		in.ask(`{"input": [1]}`)
		in.stop(syscall.SIGKILL)
		in.until("the end of all children", func() bool { return len(in.descendants()) == 0 })
	}
}

func TestAContainerThatDiesIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	config := sumConfig(dir, quoted(programs.gosum)) + "[gateway]\ncache_bytes = 0\n"
	in := start(t, dir, config).ready()
	in.ask(`{"input": [1]}`)
	for _, pid := range in.descendants() {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if exe == programs.gosum {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	in.until("a prediction after the restart", func() bool {
		a := in.ask(`{"input": [4, 5]}`)
		return !a.Default && a.Output == 9.0
	})
	if !strings.Contains(in.output(), "SIGKILL") {
		t.Errorf("the log does not say how the container ended:\n%s", in.output())
	}
}

func TestADataDirectoryHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, sumConfig(dir, quoted(programs.gosum))).ready()
	second := start(t, dir, sumConfig(dir, quoted(programs.gosum)))
	if err := <-second.exited; err == nil || !strings.Contains(second.output(), "--data-dir") {
		t.Errorf("the second ended with %v:\n%s", err, second.output())
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	dir := t.TempDir()
	in := start(t, dir, sumConfig(dir, quoted(programs.gosum))).ready()
	other := t.TempDir()
	second := start(t, other, sumConfig(other, quoted(programs.gosum)), "--gateway-addr", in.gateway)
	if err := <-second.exited; err == nil || !strings.Contains(second.output(), "--gateway-addr") {
		t.Errorf("the second ended with %v:\n%s", err, second.output())
	}
}

func TestHealthMetricsAndPages(t *testing.T) {
	dir := t.TempDir()
	in := start(t, dir, sumConfig(dir, quoted(programs.gosum))).ready()
	in.ask(`{"input": [1]}`)
	ops := strings.TrimSuffix(in.line("Metrics"), "/metrics")
	for url, want := range map[string]string{
		ops + "/health/live":          `"ok"`,
		ops + "/health/ready":         `"ok"`,
		ops + "/metrics":              `topsail_gateway_answers_total{app="sum",cause="ok"} 1`,
		in.web() + "/":                "Topsail",
		in.web() + "/api/v1/replicas": `"sum:1~0"`,
		in.web() + "/admin/ping":      "PONG",
	} {
		if text := fetched(t, url); !strings.Contains(text, want) {
			t.Errorf("GET %s: without %s in:\n%.2000s", url, want, text)
		}
	}
}
