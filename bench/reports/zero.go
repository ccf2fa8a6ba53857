package main

import (
	"context"
	"fmt"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/harness"
)

// sleepy is an app whose model goes to zero, and whose queries may wait for it.
const sleepy = `
[[app]]
name = "sleepy"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 250000
cold_start_micros = 30000000
models = ["sleepy"]
cache = { off = true }

[[model]]
name = "sleepy"
version = "1"
input_type = "doubles"
command = [%q]
replicas = 0
scale = { min = 0, max = 2, metric = "rate", target = 100.0, idle_micros = 3000000 }
`

// zero measures the way from the first query of a version at zero to its answer.
func (b *bench) zero(ctx context.Context) error {
	id := serving.ModelID{Model: "sleepy", Version: "1"}
	job := jobs.ID(id)
	if err := b.Apply(ctx, b.Catalog(harness.Replicas)+fmt.Sprintf(sleepy, b.Gosum)); err != nil {
		return err
	}
	// A new version starts once, whether or not it is asked.
	if err := until(ctx, time.Minute, "the first replica", func() bool { return b.count(job) > 0 }); err != nil {
		return err
	}
	var total, decided, servers, rest []time.Duration
	for range b.rounds {
		if err := until(ctx, 5*time.Minute, "zero", func() bool { return b.count(job) == 0 && b.running(job) == 0 }); err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
		asked := time.Now()
		cause, err := harness.AskWithin(b.Gateways()[0], "sleepy", 1, time.Minute)
		answered := time.Now()
		if err != nil || cause != "" {
			return fmt.Errorf("the first query got no prediction: %q, %w", cause, err)
		}
		list, err := b.decisions(ctx, id, asked.Add(-time.Second))
		if err != nil || len(list) == 0 {
			return fmt.Errorf("no decision was kept; answered in %v: %v, %w", answered.Sub(asked), list, err)
		}
		var started time.Time // which Nomad's client tells its server in its own time
		err = until(ctx, 10*time.Second, "the time of the container's start", func() bool {
			started = b.started(job, asked)
			return !started.IsZero()
		})
		if err != nil {
			return err
		}
		total = append(total, answered.Sub(asked))
		decided = append(decided, list[0].At.Sub(asked))
		servers = append(servers, started.Sub(list[0].At))
		rest = append(rest, answered.Sub(started))
	}
	ours := make([]time.Duration, len(total))
	for i := range ours {
		ours[i] = decided[i] + rest[i]
	}
	show("from the first query to its answer", total, "")
	show("query to the scheduler's decision", decided, "")
	show("decision to the container's start (Nomad)", servers, "")
	show("container's start to the answer, its own loading included", rest, "")
	show("beyond Nomad and Consul, container's loading included", ours, "< 500 ms")
	return nil
}

// running is how many allocations of a job have not ended.
func (b *bench) running(job string) (n int) {
	list, _, err := b.Jobs.Jobs().Allocations(job, false, nil)
	if err != nil {
		return 0
	}
	for _, a := range list {
		if a.ClientStatus == nomad.AllocClientStatusRunning || a.ClientStatus == nomad.AllocClientStatusPending {
			n++
		}
	}
	return n
}

// started is when the container of a job's newest allocation was started; zero
// while that is not known.
func (b *bench) started(job string, after time.Time) time.Time {
	list, _, err := b.Jobs.Jobs().Allocations(job, false, nil)
	if err != nil {
		return time.Time{}
	}
	for _, a := range list {
		if state := a.TaskStates["container"]; state != nil && state.StartedAt.After(after) {
			return state.StartedAt
		}
	}
	return time.Time{}
}
