package contract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// JobFleet is the seam of those who run the replicas of model versions.
type JobFleet interface {
	// Jobs lists the jobs there are.
	Jobs(ctx context.Context) ([]serving.Job, error)
	// SetCount asks for a number of replicas of a version. Where the version has no
	// job it makes one; an outdated one it brings up to date, never with fewer
	// replicas than that; one of another definition, whose replicas nobody asks, it
	// replaces at once; and else it leaves the replicas that stay alone. slo is the
	// longest of the apps that use the version: what a replica that goes has still to
	// answer.
	SetCount(ctx context.Context, v *serving.Version, slo time.Duration, change serving.JobChange) error
	// Remove ends the job of a version and all of its replicas. There may be none.
	Remove(ctx context.Context, id serving.ModelID, change serving.JobChange) error
}

// FleetRig is a fleet as the suite needs it.
type FleetRig struct {
	JobFleet
	// Newer is the same fleet run by a newer release, in whose eyes every job is
	// outdated.
	Newer JobFleet
}

// Fleet runs the suite. All tests use the same fleet, at the same time, each for
// a model of its own whose name begins with prefix. Replicas run what a version's
// command says, as a process on this machine.
func Fleet(t *testing.T, rig FleetRig, prefix string) {
	runFleet(t, prefix, func(t *testing.T, test func(*testing.T, FleetRig)) { test(t, rig) })
}

// FleetInBubbles runs it in virtual time, with a fleet in memory for each test.
func FleetInBubbles(t *testing.T, open func(t *testing.T) FleetRig, prefix string) {
	runFleet(t, prefix, func(t *testing.T, test func(*testing.T, FleetRig)) {
		synctest.Test(t, func(t *testing.T) { test(t, open(t)) })
	})
}

func runFleet(t *testing.T, prefix string, in func(*testing.T, func(*testing.T, FleetRig))) {
	tests := []struct {
		name string
		run  func(s fleet)
	}{
		{"starts and stops", fleet.startsAndStops},
		{"scales and leaves the others alone", fleet.scales},
		{"to zero and back", fleet.zero},
		{"compare and swap", fleet.compareAndSwap},
		{"versions are apart", fleet.versions},
		{"what cannot be", fleet.refusals},
		{"a command that fails", fleet.failing},
		{"stages", fleet.stages},
		{"another slo", fleet.otherSLO},
		{"an outdated job", fleet.outdated},
		{"a redefined version", fleet.redefined},
		{"an ended context", fleet.endedContext},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, rig FleetRig) {
				s := fleet{T: t, FleetRig: rig, dir: t.TempDir()}
				s.v = s.version(fmt.Sprintf("%s%d", prefix, i), "1")
				test.run(s)
			})
		})
	}
}

const fleetSLO = 10 * time.Millisecond

type fleet struct {
	*testing.T
	FleetRig
	dir string // where replicas note that they started
	v   *serving.Version
}

// version has replicas that note their start and then wait.
func (s fleet) version(model, version string) *serving.Version {
	note := filepath.Join(s.dir, "started-"+version)
	return &serving.Version{
		ModelID:   serving.ModelID{Model: model, Version: version},
		InputType: serving.Doubles, Replicas: 1,
		Container: serving.Container{
			Command: []string{"/bin/sh", "-c", `printf %s "$TOPSAIL_STAGES" > "$NOTE.stages"; echo "$TOPSAIL_MODEL:$TOPSAIL_VERSION" >> "$NOTE"; exec sleep 1000`},
			Env:     map[string]string{"NOTE": note},
		},
	}
}

// starts counts the replicas that have ever started.
func (s fleet) starts(v *serving.Version) int {
	text, err := os.ReadFile(v.Container.Env["NOTE"])
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return strings.Count(string(text), v.ModelID.String()+"\n")
}

// job is the job of a version; nil when it has none.
func (s fleet) job(from JobFleet, v *serving.Version) *serving.Job {
	s.Helper()
	list, err := from.Jobs(s.Context())
	require.NoError(s, err)
	var found *serving.Job
	for i := range list {
		if list[i].ModelID == v.ModelID {
			if found != nil {
				s.Fatalf("%v is in the list twice", v.ModelID)
			}
			found = &list[i]
		}
	}
	return found
}

// await waits for a job that is as wanted, and returns it.
func (s fleet) await(from JobFleet, v *serving.Version, what string, as func(*serving.Job) bool) *serving.Job {
	s.Helper()
	var job *serving.Job
	wait.Until(s, what, func() bool { job = s.job(from, v); return job != nil && as(job) }, func() string { return fmt.Sprintf("%+v, %d starts", job, s.starts(v)) })
	return job
}

func (s fleet) awaitRunning(v *serving.Version, n, starts int) *serving.Job {
	s.Helper()
	return s.await(s.JobFleet, v, fmt.Sprintf("%d running after %d starts", n, starts), func(j *serving.Job) bool { return j.Running == n && s.starts(v) == starts })
}

// set changes the count, which must be possible and be seen at once.
func (s fleet) set(v *serving.Version, count int) *serving.Job {
	s.Helper()
	before := uint64(0)
	if job := s.job(s.JobFleet, v); job != nil {
		before = job.Index
	} else {
		s.Cleanup(func() { s.remove(v) })
	}
	require.NoError(s, s.SetCount(s.Context(), v, fleetSLO, serving.JobChange{Count: count, Index: before, Reason: "the contract"}))
	job := s.job(s.JobFleet, v)
	if job == nil || job.Count != count || job.Index <= before {
		s.Fatalf("after setting %d at index %d: %+v", count, before, job)
	}
	return job
}

// remove ends a job whatever has become of it.
func (s fleet) remove(v *serving.Version) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := s.Jobs(ctx)
	for _, job := range list {
		if job.ModelID == v.ModelID {
			err = errors.Join(err, s.Remove(ctx, v.ModelID, serving.JobChange{Index: job.Index}))
		}
	}
	if err != nil {
		s.Error(err)
	}
}

// stages are told to the container, as they are.
func (s fleet) stages() {
	s.v.Stages = serving.Pipeline{
		{Name: "a", Code: "m:A \"b\" $HOME \\", Workers: 2, CPUs: []int{0, 1}},
		{Name: "b", Batch: serving.StageBatch{Strategy: "fixed", MaxSize: 16, Delay: serving.Duration(2 * time.Millisecond)}},
	}
	s.set(s.v, 1)
	s.awaitRunning(s.v, 1, 1)
	told, err := os.ReadFile(s.v.Container.Env["NOTE"] + ".stages")
	if err != nil || string(told) != s.v.Stages.JSON() {
		s.Fatalf("the container was told %s, %v, and not %s", told, err, s.v.Stages.JSON())
	}
}

func (s fleet) startsAndStops() {
	if job := s.job(s.JobFleet, s.v); job != nil {
		s.Fatalf("there is a job before there is one: %+v", job)
	}
	s.set(s.v, 1)
	job := s.awaitRunning(s.v, 1, 1)
	if job.Blocked != "" || job.Problem != "" || job.Outdated {
		s.Errorf("a healthy job: %+v", job)
	}
	require.NoError(s, s.Remove(s.Context(), s.v.ModelID, serving.JobChange{Index: job.Index}))
	if job := s.job(s.JobFleet, s.v); job != nil {
		s.Errorf("a removed job: %+v", job)
	}
	if err := s.Remove(s.Context(), s.v.ModelID, serving.JobChange{}); err != nil {
		s.Errorf("removing what is gone: %v", err)
	}
	s.set(s.v, 1) // one or two starts: who is back before a replica was stopped may keep it
	s.await(s.JobFleet, s.v, "running again", func(j *serving.Job) bool { return j.Running == 1 })
}

func (s fleet) scales() {
	s.set(s.v, 1)
	s.awaitRunning(s.v, 1, 1)
	s.set(s.v, 3)
	s.awaitRunning(s.v, 3, 3)
	s.set(s.v, 2)
	s.awaitRunning(s.v, 2, 3)
}

func (s fleet) zero() {
	s.set(s.v, 0)
	s.awaitRunning(s.v, 0, 0)
	s.set(s.v, 1)
	s.awaitRunning(s.v, 1, 1)
	s.set(s.v, 0)
	job := s.awaitRunning(s.v, 0, 1)
	if job.Problem != "" {
		s.Errorf("none asked for and none there is a problem: %s", job.Problem)
	}
	s.set(s.v, 1)
	s.awaitRunning(s.v, 1, 2)
}

func (s fleet) compareAndSwap() {
	if err := s.SetCount(s.Context(), s.v, fleetSLO, serving.JobChange{Count: 1, Index: 1}); !errors.Is(err, serving.ErrJobChanged) {
		s.Errorf("a job that is not there any more: %v", err)
	}
	old := s.set(s.v, 1)
	now := s.set(s.v, 2)
	for _, index := range []uint64{0, old.Index, now.Index + 1000000} {
		if err := s.SetCount(s.Context(), s.v, fleetSLO, serving.JobChange{Count: 5, Index: index}); !errors.Is(err, serving.ErrJobChanged) {
			s.Errorf("scale at index %d of %d: %v", index, now.Index, err)
		}
		if err := s.Remove(s.Context(), s.v.ModelID, serving.JobChange{Index: index}); !errors.Is(err, serving.ErrJobChanged) {
			s.Errorf("remove at index %d of %d: %v", index, now.Index, err)
		}
	}
	if job := s.job(s.JobFleet, s.v); job == nil || job.Count != 2 || job.Index != now.Index {
		s.Errorf("what was refused has changed something: %+v", job)
	}
	s.race()
}

// race: of many changes of the same job at the same time, one is made.
func (s fleet) race() {
	now := s.job(s.JobFleet, s.v)
	const racers = 4
	results := make(chan error, racers)
	for i := range racers {
		go func() {
			results <- s.SetCount(s.Context(), s.v, fleetSLO, serving.JobChange{Count: 3 + i, Index: now.Index})
		}()
	}
	made := 0
	for range racers {
		switch err := <-results; {
		case err == nil:
			made++
		case !errors.Is(err, serving.ErrJobChanged):
			s.Error(err)
		}
	}
	if made != 1 {
		s.Errorf("%d of %d changes at the same index were made", made, racers)
	}
}

func (s fleet) versions() {
	other := s.version(s.v.Model, "2")
	s.set(s.v, 1)
	s.set(other, 1)
	s.awaitRunning(s.v, 1, 1)
	s.awaitRunning(other, 1, 1)
	s.set(s.v, 0)
	s.awaitRunning(s.v, 0, 1)
	if job := s.awaitRunning(other, 1, 1); job.Count != 1 {
		s.Errorf("the other version: %+v", job)
	}
}

func (s fleet) refusals() {
	for _, count := range []int{-1, serving.MaxReplicas + 1} {
		if err := s.SetCount(s.Context(), s.v, fleetSLO, serving.JobChange{Count: count}); !errors.Is(err, serving.ErrJobRefused) {
			s.Errorf("%d replicas: %v", count, err)
		}
	}
	if job := s.job(s.JobFleet, s.v); job != nil {
		s.Errorf("what was refused has made a job: %+v", job)
	}
}

func (s fleet) failing() {
	s.v.Container.Command = []string{"/bin/sh", "-c", "exit 3"}
	s.set(s.v, 1)
	job := s.await(s.JobFleet, s.v, "a problem", func(j *serving.Job) bool { return j.Problem != "" })
	if !strings.Contains(job.Problem, "exit ") || !strings.Contains(job.Problem, "3") || job.Count != 1 {
		s.Errorf("%+v", job)
	}
	s.set(s.v, 0)
	s.await(s.JobFleet, s.v, "without a problem", func(j *serving.Job) bool { return j.Problem == "" && j.Running == 0 })
}

func (s fleet) otherSLO() {
	job := s.set(s.v, 1)
	s.awaitRunning(s.v, 1, 1)
	require.NoError(s, s.SetCount(s.Context(), s.v, time.Second, serving.JobChange{Count: 2, Index: job.Index}))
	s.awaitRunning(s.v, 2, 2)
	s.set(s.v, 1) // and back
	s.awaitRunning(s.v, 1, 2)
}

func (s fleet) outdated() {
	s.set(s.v, 2)
	job := s.awaitRunning(s.v, 2, 2)
	if job := s.job(s.Newer, s.v); job == nil || !job.Outdated {
		s.Fatalf("in the eyes of a newer release: %+v", job)
	}
	require.NoError(s, s.Newer.SetCount(s.Context(), s.v, fleetSLO, serving.JobChange{Count: 2, Index: job.Index}))
	s.await(s.Newer, s.v, "up to date", func(j *serving.Job) bool {
		if j.Running < 2 {
			s.Errorf("%d of 2 replicas run during the update", j.Running)
		}
		return !j.Outdated && j.Blocked == "" && j.Running == 2 && s.starts(s.v) >= 4
	})
	starts := s.starts(s.v)
	job = s.job(s.Newer, s.v)
	require.NoError(s, s.Newer.SetCount(s.Context(), s.v, fleetSLO, serving.JobChange{Count: 1, Index: job.Index}))
	job = s.await(s.Newer, s.v, "scaled", func(j *serving.Job) bool { return j.Running == 1 && s.starts(s.v) == starts })
	if job.Blocked != "" {
		s.Errorf("scaling after an update is a rollout: %s", job.Blocked)
	}
}

// redefined defines a version anew, and again while the replicas of before are still on their way.
func (s fleet) redefined() {
	s.v.Generation = "a"
	s.set(s.v, 2)
	s.awaitRunning(s.v, 2, 2)
	for _, generation := range []string{"b", "c", "d"} {
		next := *s.v
		next.Generation, next.Container.Env = generation, map[string]string{"NOTE": filepath.Join(s.dir, generation)}
		s.v = &next
		s.set(s.v, 2)
	}
	job := s.awaitRunning(s.v, 2, 2)
	if job.Blocked != "" {
		s.Errorf("the replicas of the last definition run, and the job is blocked: %s", job.Blocked)
	}
}

func (s fleet) endedContext() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if _, err := s.Jobs(ctx); !errors.Is(err, context.Canceled) {
		s.Errorf("jobs: %v", err)
	}
	if err := s.SetCount(ctx, s.v, fleetSLO, serving.JobChange{Count: 1}); !errors.Is(err, context.Canceled) {
		s.Errorf("set count: %v", err)
	}
	if err := s.Remove(ctx, s.v.ModelID, serving.JobChange{}); !errors.Is(err, context.Canceled) {
		s.Errorf("remove: %v", err)
	}
	if job := s.job(s.JobFleet, s.v); job != nil {
		s.Errorf("a change with an ended context was made: %+v", job)
	}
}
