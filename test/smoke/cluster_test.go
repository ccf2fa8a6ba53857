//go:build smoke

package smoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/harness"
	"github.com/topsail-serving/topsail/test/require"
)

// slo is so long that an answer late by it is none.
const slo = 20 * time.Second

// TestCluster goes through the life of a model in a cluster, and ends with a stream.
func TestCluster(t *testing.T) {
	deadline, ok := t.Deadline()
	if !ok {
		t.Fatal("run it with a -timeout")
	}
	ctx, cancel := context.WithDeadline(t.Context(), deadline.Add(-30*time.Second)) // to leave nothing behind
	defer cancel()
	begun := time.Now()
	rig, err := harness.New(ctx, slo, 0)
	t.Cleanup(rig.Close)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(rig.Story(begun))
		}
	})
	c := &cluster{rig}
	go c.FollowGateways(ctx)
	for _, step := range []struct {
		name string
		do   func(context.Context, *testing.T)
	}{
		{"two gateways answer", c.answers},
		{"InfluxDB has what was done", c.measured},
		{"a version takes over", c.takesOver},
		{"a killed replica comes back", c.comesBack},
		{"to zero and back", c.zero},
		{"a stream of Kafka", c.stream},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(ctx, t) }) {
			return
		}
	}
}

type cluster struct{ *harness.Rig }

func (c *cluster) await(ctx context.Context, t *testing.T, good func(context.Context) error) {
	t.Helper()
	require.NoError(t, c.Await(ctx, good))
}

func (c *cluster) apply(ctx context.Context, t *testing.T, catalog string) {
	t.Helper()
	require.NoError(t, c.Apply(ctx, catalog))
}

// tasks are the running processes of a version's replicas.
func (c *cluster) tasks(job string) []harness.Task {
	return slices.DeleteFunc(harness.Tasks(c.Dir), func(task harness.Task) bool { return task.Job != job })
}

func (c *cluster) answers(ctx context.Context, t *testing.T) {
	c.await(ctx, t, c.Whole)
}

// measured finds the answers of gateways in InfluxDB, and the batches of replicas.
func (c *cluster) measured(ctx context.Context, t *testing.T) {
	for _, what := range []string{
		`SELECT sum(answers_ok) FROM topsail_apps WHERE "role" = 'gateway'`,
		`SELECT sum(batch_size_count) FROM topsail_versions WHERE "role" = 'sidecar'`,
	} {
		c.await(ctx, t, func(ctx context.Context) error {
			query := url.Values{"db": {"topsail"}, "q": {what}}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.InfluxDB.Addr+"/query?"+query.Encode(), nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err == nil && !strings.Contains(string(text), `"values":[[`) {
				err = fmt.Errorf("%s: %s", what, text)
			}
			return err
		})
	}
}

// takesOver deploys a version beside the first, and takes the first away.
func (c *cluster) takesOver(ctx context.Context, t *testing.T) {
	c.apply(ctx, t, c.CatalogOf(harness.Replicas, "2", "1", "2"))
	c.await(ctx, t, func(ctx context.Context) error {
		if len(c.tasks(c.Model("2"))) == 0 {
			return errors.New("version 2 does not run")
		}
		return c.TwoGateways(ctx)
	})
	c.apply(ctx, t, c.CatalogOf(harness.Replicas, "2", "2"))
	c.await(ctx, t, func(ctx context.Context) error {
		if left := c.tasks(c.Model("1")); len(left) > 0 {
			return fmt.Errorf("version 1 still runs: %v", left)
		}
		return c.Whole(ctx)
	})
}

// comesBack kills all processes of a replica.
func (c *cluster) comesBack(ctx context.Context, t *testing.T) {
	before := c.tasks(c.Model("2"))
	if len(before) == 0 {
		t.Fatal("version 2 does not run")
	}
	killed := before[0].Alloc
	for _, task := range before {
		if task.Alloc == killed {
			_ = syscall.Kill(task.PID, syscall.SIGKILL) // it may have ended with the other
		}
	}
	c.await(ctx, t, func(ctx context.Context) error {
		now := c.tasks(c.Model("2"))
		if slices.ContainsFunc(before, func(task harness.Task) bool { return task.Alloc == killed && slices.Contains(now, task) }) {
			return errors.New("what was killed runs")
		}
		if len(now) != len(before) {
			return fmt.Errorf("%d of %d processes run", len(now), len(before))
		}
		return c.Whole(ctx)
	})
}

// sleepy is an app whose model goes to zero, and whose queries may wait for it.
const sleepy = `
[[app]]
name = "sleepy"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = %d
cold_start_micros = 60000000
models = ["sleepy"]
cache = { off = true }

[[model]]
name = "sleepy"
version = "1"
input_type = "doubles"
command = [%q]
replicas = 0
scale = { min = 0, max = 2, metric = "rate", target = 100.0, idle_micros = 2000000 }
`

// zero asks a model twice, the second time when it has gone to zero.
func (c *cluster) zero(ctx context.Context, t *testing.T) {
	c.apply(ctx, t, c.CatalogOf(harness.Replicas, "2", "2")+fmt.Sprintf(sleepy, slo.Microseconds(), c.Gosum))
	asked := func(context.Context) error {
		cause, err := harness.AskWithin(c.Gateways()[0], "sleepy", 1, 2*time.Minute)
		if err == nil && cause != "" {
			err = fmt.Errorf("%w: %s", harness.ErrDefault, cause)
		}
		return err
	}
	c.await(ctx, t, asked) // again: the gateways may not have heard of the app
	job := jobs.ID(serving.ModelID{Model: "sleepy", Version: "1"})
	c.await(ctx, t, func(context.Context) error {
		if left := c.tasks(job); len(left) > 0 {
			return fmt.Errorf("not at zero: %v", left)
		}
		return nil
	})
	if err := asked(ctx); err != nil {
		t.Error("the first query after zero:", err)
	}
}
