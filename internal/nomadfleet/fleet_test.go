package nomadfleet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"topsail/jobs"
	"topsail/serving"
)

const waitFor = 30 * time.Second

// start registers a version and waits until its replicas run.
func start(t *testing.T, f *Fleet, v *serving.Version) serving.Job {
	t.Helper()
	if err := f.SetCount(t.Context(), v, 0, serving.JobChange{Count: v.Replicas}); err != nil {
		t.Fatal(err)
	}
	return await(t, f, v.ModelID, "running", func(j serving.Job) bool { return j.Running == j.Count })
}

// await waits until the job of a version is as wanted.
func await(t *testing.T, f *Fleet, id serving.ModelID, what string, as func(serving.Job) bool) serving.Job {
	t.Helper()
	until := time.Now().Add(waitFor)
	for poll := time.Tick(50 * time.Millisecond); ; <-poll {
		list, err := f.Jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(j serving.Job) bool { return j.ModelID == id })
		if i >= 0 && as(list[i]) {
			return list[i]
		}
		if time.Now().After(until) {
			t.Fatalf("%v is not %s: %+v", id, what, list)
		}
	}
}

// TestSecretsAndLogs: a secret reaches the container as it is, whatever is in it,
// and the container's output can be read.
func TestSecretsAndLogs(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	v := sleeper("secrets")
	const secret = "a\"b\\c $HOME ${HOME} {{ x }} <&> é # '\n" + "next line"
	v.Container = serving.ContainerSpec{
		Command: []string{"/bin/sh", "-c", `printf '%s\n' "$PASSWORD"; echo "to stderr of $TOPSAIL_MODEL" >&2; exec sleep 1000`},
		Secrets: map[string]string{"PASSWORD": "the_password"},
	}
	path := "nomad/jobs/" + jobs.ID(v.ModelID)
	if _, _, err := f.client.Variables().Create(&api.Variable{Path: path, Items: api.VariableItems{"the_password": secret}}, nil); err != nil {
		t.Fatal(err)
	}
	start(t, f, v)
	read := func(q LogQuery, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), waitFor)
		defer cancel()
		q.Follow = true
		logs, err := f.Logs(ctx, v.ModelID, q)
		for poll := time.Tick(50 * time.Millisecond); err != nil && ctx.Err() == nil; <-poll { // the container starts after the sidecar
			logs, err = f.Logs(ctx, v.ModelID, q)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(logs, got); err != nil || string(got) != want {
			t.Errorf("logs %q, error %v; want %q", got, err, want)
		}
	}
	read(LogQuery{}, secret+"\n")
	read(LogQuery{Task: jobs.Container, Stderr: true}, "to stderr of secrets\n")
	if _, err := f.Logs(t.Context(), v.ModelID, LogQuery{Replica: "zz"}); err == nil {
		t.Error("the logs of a replica that is not there")
	}
	if _, err := f.Logs(t.Context(), v.ModelID, LogQuery{Task: "x"}); err == nil {
		t.Error("the logs of a task that is not there")
	}
}

// TestTakenBack: an update whose replicas do not get healthy leaves the old ones
// running, and is not tried again and again.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	v := sleeper("taken-back")
	job := start(t, f, v)
	broken := settings(t)
	broken.Program.Source = "/bin/false"
	newer := open(t, broken)
	if err := newer.SetCount(t.Context(), v, 0, serving.JobChange{Count: 1, Index: job.Index}); err != nil {
		t.Fatal(err)
	}
	job = await(t, newer, v.ModelID, "blocked", func(j serving.Job) bool { return j.Blocked != "" })
	if !strings.Contains(job.Blocked, "a rollout is running for ") || !strings.Contains(job.Blocked, "0 of 1 replicas are healthy") {
		t.Errorf("blocked: %q", job.Blocked)
	}
	for name, count := range map[string]int{"the present": 1, "another": 2} {
		if err := newer.SetCount(t.Context(), v, 0, serving.JobChange{Count: count, Index: job.Index}); !errors.Is(err, serving.ErrJobBlocked) {
			t.Errorf("%s count during a rollout: %v", name, err)
		}
	}
	active, err := newer.activeDeployments(t.Context())
	if err != nil || active[jobs.ID(v.ModelID)] == nil {
		t.Fatalf("%v, error %v", active, err)
	}
	// Nomad itself would give up at the progress_deadline.
	if _, _, err := f.client.Deployments().Fail(active[jobs.ID(v.ModelID)].ID, nil); err != nil {
		t.Fatal(err)
	}
	job = await(t, newer, v.ModelID, "taken back", func(j serving.Job) bool {
		if j.Running < 1 {
			t.Errorf("the old replica does not run: %+v", j)
		}
		return strings.HasPrefix(j.Problem, "an update of the job was taken back") && j.Blocked == ""
	})
	if job.Outdated || job.Count != 1 {
		t.Errorf("%+v", job)
	}
	if err := newer.SetCount(t.Context(), v, 0, serving.JobChange{Count: 2, Index: job.Index}); err != nil {
		t.Fatal(err)
	}
	await(t, newer, v.ModelID, "scaled as it was", func(j serving.Job) bool { return j.Running == 2 && j.Blocked == "" })
}

// TestScaleService sets the count of a job that is not a model version's.
func TestScaleService(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	hcl := "job \"gateways\" {\n group \"gateway\" {\n count = 0\n task \"t\" {\n driver = \"raw_exec\"\n config {\n command = \"/bin/sleep\"\n args = [\"1000\"]\n}\n}\n}\n}"
	job, err := f.Validate(t.Context(), hcl)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.client.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.ScaleService(t.Context(), "gateways", "gateway", 0, "for a test"); err != nil {
		t.Fatal(err)
	}
	events, _, err := f.client.Jobs().ScaleStatus("gateways", nil)
	if err != nil || len(events.TaskGroups["gateway"].Events) != 1 || events.TaskGroups["gateway"].Events[0].Message != "for a test" {
		t.Errorf("%+v, error %v", events, err)
	}
	if err := f.ScaleService(t.Context(), "no-such-job", "gateway", 1, ""); !errors.Is(err, serving.ErrJobChanged) {
		t.Errorf("a job that is not there: %v", err)
	}
	if err := f.ScaleService(t.Context(), "gateways", "no-such-group", 1, ""); !errors.Is(err, serving.ErrJobRefused) {
		t.Errorf("a group that is not there: %v", err)
	}
	list, err := f.Jobs(t.Context())
	if err != nil || slices.ContainsFunc(list, func(j serving.Job) bool { return j.Model == "" }) {
		t.Errorf("a job of somebody else is in the list: %+v, error %v", list, err)
	}
}

// recorder passes calls on to Nomad and notes them.
type recorder struct {
	*httputil.ReverseProxy
	token string // when set, calls need it

	mu    sync.Mutex
	calls []string
}

func record(t *testing.T, token string) (*recorder, string) {
	t.Helper()
	to, err := url.Parse(nomad)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{ReverseProxy: httputil.NewSingleHostReverseProxy(to), token: token}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return r, server.URL
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.calls = append(r.calls, req.Method+" "+req.URL.Path)
	r.mu.Unlock()
	if r.token != "" && req.Header.Get("X-Nomad-Token") != r.token {
		http.Error(w, "Permission denied", http.StatusForbidden)
		return
	}
	req.Header.Del("X-Nomad-Token") // Nomad itself knows none here
	r.ReverseProxy.ServeHTTP(w, req)
}

// since is what was called since the last time.
func (r *recorder) since() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// TestOneCall: a list is one call, whatever the number of jobs, when all is well.
func TestOneCall(t *testing.T) {
	t.Parallel()
	r, address := record(t, "")
	f := open(t, settings(t))
	f.client = client(t, address)
	for _, model := range []string{"one-call-a", "one-call-b", "one-call-c"} {
		v := sleeper(model)
		if err := f.SetCount(t.Context(), v, 0, serving.JobChange{}); err != nil {
			t.Fatal(err)
		}
	}
	// Other tests have jobs with troubles of their own: look at ours alone.
	stubs := func() []*api.JobListStub {
		list, err := f.list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(list, func(s *api.JobListStub) bool { return !strings.HasPrefix(s.ID, "topsail-one-call-") })
	}
	for i, want := range []int{4, 1} {
		r.since()
		list := stubs()
		details, err := f.refresh(t.Context(), list)
		if err != nil || len(details) != 3 {
			t.Fatalf("%d jobs, error %v", len(details), err)
		}
		if err := (&look{fleet: f, stubs: list, details: details}).further(t.Context()); err != nil {
			t.Fatal(err)
		}
		if calls := r.since(); len(calls) != want {
			t.Errorf("list %d took %v", i+1, calls)
		}
	}
}

func client(t *testing.T, address string) *api.Client {
	t.Helper()
	conf := api.DefaultConfig()
	conf.Address = address
	c, err := api.NewClient(conf)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTokenFile: a token that is refused is read again, once.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	r, address := record(t, "second")
	file := filepath.Join(t.TempDir(), "token")
	put := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("first")
	conf := api.DefaultConfig()
	conf.Address = address
	f, err := Open(Config{API: conf, TokenFile: file, Jobs: settings(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Jobs(t.Context()); status(err) != http.StatusForbidden {
		t.Errorf("with the first token: %v", err)
	}
	if calls := r.since(); len(calls) != 1 {
		t.Errorf("a refused token of an unchanged file: %v", calls)
	}
	put("second")
	if _, err := f.Jobs(t.Context()); err != nil {
		t.Errorf("with the second token: %v", err)
	}
	if err := f.Remove(t.Context(), serving.ModelID{Model: "none", Version: "1"}, serving.JobChange{}); err != nil {
		t.Errorf("another call with the second token: %v", err)
	}
	if _, err := Open(Config{TokenFile: file + "x", Jobs: settings(t)}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

// TestUnixSocket: the task API of Nomad is a socket.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	to, err := url.Parse(nomad)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "s") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(to))
	if server.Listener, err = net.Listen("unix", filepath.Join(dir, "api.sock")); err != nil {
		t.Fatal(err)
	}
	server.Start()
	defer server.Close()
	conf := api.DefaultConfig()
	conf.Address = "unix://" + filepath.Join(dir, "api.sock")
	f, err := Open(Config{API: conf, Jobs: settings(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Jobs(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestChanges: a change of a job is heard, and so is one while nobody listened.
func TestChanges(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	ctx, stop := context.WithCancel(t.Context())
	heard := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		done <- f.Changes(ctx, func() {
			select {
			case heard <- struct{}{}:
			default:
			}
		})
	}()
	hear := func(what string) {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(waitFor):
			t.Fatalf("%s was not heard", what)
		}
	}
	hear("the connection")
	v := sleeper("changes")
	if err := f.SetCount(t.Context(), v, 0, serving.JobChange{}); err != nil {
		t.Fatal(err)
	}
	hear("a new job")
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestNobodyAnswers: without a Nomad every call fails, and says so.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	conf := api.DefaultConfig()
	conf.Address = "http://127.0.0.1:1"
	f, err := Open(Config{API: conf, Jobs: settings(t)})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := f.Jobs(t.Context()); err == nil {
		t.Errorf("jobs of nobody: %v", list)
	}
	err = f.SetCount(t.Context(), sleeper("none"), 0, serving.JobChange{Count: 1})
	if err == nil || errors.Is(err, serving.ErrJobRefused) || errors.Is(err, serving.ErrJobChanged) {
		t.Errorf("set count: %v", err)
	}
}
