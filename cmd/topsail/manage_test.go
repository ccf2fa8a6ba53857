package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
	"github.com/topsail-serving/topsail/web/api"
)

var uiLine = regexp.MustCompile(`(https?://[0-9.:]+)/ui/`)

// web is the address of the management side.
func (in *instance) web() string {
	in.t.Helper()
	in.until("the greeting", func() bool { return strings.Contains(in.output(), "Stop with Ctrl-C") })
	return uiLine.FindStringSubmatch(in.output())[1]
}

// operator is somebody at a terminal, who runs topsail's commands.
type operator struct {
	t      *testing.T
	env    []string // where Topsail is, and the key
	flags  []string // of every command
	client *http.Client
}

// operate is an operator of a local mode.
func operate(t *testing.T, in *instance) *operator {
	t.Helper()
	o := &operator{t: t, env: []string{"TOPSAIL_ADMIN_URL=" + in.web()}, client: http.DefaultClient}
	return o.with("TOPSAIL_URL=" + get[api.Me](o, "/me").Gateway)
}

// with is the operator with more variables.
func (o *operator) with(env ...string) *operator {
	other := *o
	other.env = slices.Concat(o.env, env)
	return &other
}

// setting is a variable of the operator.
func (o *operator) setting(name string) string {
	for _, one := range slices.Backward(o.env) {
		if value, ok := strings.CutPrefix(one, name+"="); ok {
			return value
		}
	}
	return ""
}

// run runs a command to its end.
func (o *operator) run(args ...string) (out, said string, code int) {
	o.t.Helper()
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	cmd := exec.CommandContext(o.t.Context(), programs.topsail, slices.Insert(slices.Clone(args), end, o.flags...)...)
	cmd.Env = append(os.Environ(), o.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		o.t.Fatalf("topsail %q: %v", args, err)
	} else if ok {
		code = exit.ExitCode()
	}
	return stdout.String(), stderr.String(), code
}

// do runs a command that works, and returns what it printed.
func (o *operator) do(args ...string) string {
	o.t.Helper()
	out, said, code := o.run(args...)
	if code != 0 {
		o.t.Fatalf("topsail %q: exit status %d\n%s%s", args, code, out, said)
	}
	return out
}

// refused runs a command that ends with a status and says why.
func (o *operator) refused(status int, why string, args ...string) {
	o.t.Helper()
	out, said, code := o.run(args...)
	if code != status || !strings.Contains(said, why) || strings.Contains(said, "goroutine") {
		o.t.Errorf("topsail %q: exit status %d, want %d and %q\n%s%s", args, code, status, why, out, said)
	}
}

// get reads a document of the management API.
func get[T any](o *operator, path string) (v T) {
	o.t.Helper()
	text := o.fetch(path)
	if err := json.Unmarshal(text, &v); err != nil {
		o.t.Fatalf("GET %s: %v in %s", path, err, text)
	}
	return v
}

// list reads the items of a list of the management API.
func list[T any](o *operator, path string) []T {
	o.t.Helper()
	return get[struct {
		Items []T `json:"items"`
	}](o, path).Items
}

func (o *operator) fetch(path string) []byte {
	o.t.Helper()
	status, text := o.send(http.MethodGet, path, "")
	if status != http.StatusOK {
		o.t.Fatalf("GET %s: status %d: %s", path, status, text)
	}
	return text
}

// send sends a request to the management API.
func (o *operator) send(method, path, body string) (int, []byte) {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), method, o.setting("TOPSAIL_ADMIN_URL")+"/api/v1"+path, strings.NewReader(body))
	require.NoError(o.t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	o.show(request)
	response, err := o.client.Do(request)
	require.NoError(o.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(o.t, err)
	return response.StatusCode, text
}

// show puts the operator's key, if there is one, into a request.
func (o *operator) show(request *http.Request) {
	if key := o.setting("TOPSAIL_API_KEY"); key != "" {
		request.Header.Set("X-Api-Key", key)
	}
}

// replicas are those of a version, such as sum:1.
func (o *operator) replicas(version string) []api.Replica {
	o.t.Helper()
	model, name, _ := strings.Cut(version, ":")
	return list[api.Replica](o, "/replicas?model="+model+"&version="+name)
}

// ready waits until a version has n replicas, and all are ready.
func (o *operator) ready(version string, n int) []api.Replica {
	o.t.Helper()
	var all []api.Replica
	wait.Until(o.t, fmt.Sprintf("%d ready replicas of %s", n, version), func() bool {
		all = o.replicas(version)
		return len(all) == n && !slices.ContainsFunc(all, func(r api.Replica) bool { return r.State != "ready" })
	})
	return all
}

// answers waits until an app gives an output: a gateway hears of changes and replicas a
// moment later than the management side.
func (o *operator) answers(app, input, output string) {
	o.t.Helper()
	wait.Until(o.t, fmt.Sprintf("answer %s of app %s to %s", output, app, input), func() bool {
		got, _, _ := o.run("predict", app, input)
		return got == output+"\n"
	})
}

// patience is for what other processes bring about, on a machine that does other things, too.
const patience = 60 * time.Second

// announcing is a command that says that it starts and becomes the container that sums up.
func announcing() []string {
	return []string{"--", "sh", "-c", "echo the model starts; exec " + programs.gosum}
}
