//go:build servers

package nomadfleet

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/wait"
)

const waitFor = 30 * time.Second

// start registers a version and waits until its replicas run.
func start(t *testing.T, f *Fleet, v *serving.Version) serving.Job {
	t.Helper()
	register(t, f, v, v.Replicas)
	return await(t, f, v.ModelID, "running", func(j serving.Job) bool { return j.Running == j.Count })
}

// register makes the job of a version for the time of a test.
func register(t *testing.T, f *Fleet, v *serving.Version, count int) {
	t.Helper()
	if err := f.SetCount(t.Context(), v, 0, serving.JobChange{Count: count}); err != nil {
		t.Fatal(err)
	}
	forget(t, f, jobs.ID(v.ModelID))
}

// forget ends a job with the test.
func forget(t *testing.T, f *Fleet, job string) {
	t.Cleanup(func() {
		if _, _, err := f.client.Jobs().Deregister(job, true, nil); err != nil {
			t.Error(err)
		}
	})
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
		var job serving.Job
		if i := slices.IndexFunc(list, func(j serving.Job) bool { return j.ModelID == id }); i >= 0 {
			job = list[i]
			if as(job) {
				return job
			}
		}
		if time.Now().After(until) {
			t.Fatalf("%v is not %s: %d of %d run, blocked: %q, problem: %q", id, what, job.Running, job.Count, job.Blocked, job.Problem)
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
	v.Container = serving.Container{
		Command: []string{"/bin/sh", "-c", `printf '%s\n' "$PASSWORD"; echo "to stderr of $TOPSAIL_MODEL" >&2; exec sleep 1000`},
		Secrets: map[string]string{"PASSWORD": "the_password"},
	}
	path := "nomad/jobs/" + jobs.ID(v.ModelID)
	if _, _, err := f.client.Variables().Create(&api.Variable{Path: path, Items: api.VariableItems{"the_password": secret}}, nil); err != nil {
		t.Fatal(err)
	}
	start(t, f, v)
	replica := replicasOf(t, f, v.ModelID)[0].ID
	read := func(q LogQuery, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), waitFor)
		defer cancel()
		q.Follow = true
		logs, err := f.Logs(ctx, replica, q)
		for poll := time.Tick(50 * time.Millisecond); err != nil && ctx.Err() == nil; <-poll { // the container starts after the sidecar
			logs, err = f.Logs(ctx, replica, q)
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
	read(LogQuery{Bytes: int64(len("next line\n")), Follow: true}, "next line\n")
	for _, id := range []string{"zz", "00000000-0000-0000-0000-000000000000"} {
		if _, err := f.Logs(t.Context(), id, LogQuery{}); !errors.Is(err, ErrNoReplica) {
			t.Errorf("the logs of a replica %q that is not there: %v", id, err)
		}
	}
	if _, err := f.Logs(t.Context(), replica, LogQuery{Task: "x"}); err == nil {
		t.Error("the logs of a task that is not there")
	}
	job := await(t, f, v.ModelID, "known", func(serving.Job) bool { return true })
	if err := f.Remove(t.Context(), v.ModelID, serving.JobChange{Index: job.Index}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "its end", func() bool { return len(replicasOf(t, f, v.ModelID)) == 0 })
	if got, err := f.VersionOf(t.Context(), replica); err != nil || got != v.ModelID {
		t.Errorf("a replica that ended was of %v, error %v", got, err)
	}
	ended, err := f.Logs(t.Context(), replica, LogQuery{})
	if err != nil {
		t.Fatal(err)
	}
	defer ended.Close()
	if got, err := io.ReadAll(ended); err != nil || string(got) != secret+"\n" {
		t.Errorf("logs of a replica that ended: %q, error %v", got, err)
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
	job = await(t, newer, v.ModelID, "rolled back", func(j serving.Job) bool {
		if j.Running < 1 {
			t.Errorf("the old replica does not run: %+v", j)
		}
		return strings.HasPrefix(j.Problem, "an update of the job was rolled back") && j.Blocked == ""
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
	task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sleep").SetConfig("args", []string{"1000"})
	job := api.NewServiceJob("gateways", "gateways", "global", 50).AddDatacenter("*").AddTaskGroup(api.NewTaskGroup("gateway", 0).AddTask(task))
	if _, _, err := f.client.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	forget(t, f, "gateways")
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

// TestNoBundles: what no node could fetch is not started, and the error says why.
func TestNoBundles(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	f.bundles = func(context.Context) error { return errors.New("nodes cannot fetch bundles: run the job topsail-web") }
	v := sleeper("no-bundles")
	v.Container = serving.Container{Bundle: "sha256:" + strings.Repeat("0", 64)}
	err := f.SetCount(t.Context(), v, 0, serving.JobChange{Count: 1})
	if err == nil || !strings.Contains(err.Error(), "run the job topsail-web") {
		t.Errorf("error is %v", err)
	}
	if d, err := f.current(t.Context(), jobs.ID(v.ModelID)); d != nil || err != nil {
		t.Errorf("there is a job: %+v, error %v", d, err)
	}
	v.Container.BundleURL = "https://models.example/wine.zip" // which nodes fetch elsewhere
	register(t, f, v, 1)
}
