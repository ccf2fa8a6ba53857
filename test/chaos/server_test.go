//go:build faults

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/test/harness"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// away stops servers for the outage, and starts them again.
func away(t *testing.T, list ...*servers.Server) {
	t.Helper()
	for _, s := range list {
		s.Stop()
	}
	time.Sleep(*outage)
	back(t, list...)
}

// back starts servers again, the last stopped first.
func back(t *testing.T, list ...*servers.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for _, s := range slices.Backward(list) {
		require.NoError(t, s.Start(ctx))
	}
}

func TestRedisAway(t *testing.T) {
	want(t, cluster.under(t, "Redis is unavailable; a gateway is restarted", func(t *testing.T) {
		cluster.Redis.Stop()
		signal(t, cluster.pick(t, "topsail-gateway", "gateway").PID, syscall.SIGKILL)
		time.Sleep(*outage)
		if err := cluster.TwoGateways(t.Context()); err != nil {
			t.Errorf("the gateway does not start from the last good state: %v", err)
		}
		back(t, cluster.Redis)
	}), 0)
}

func TestConsulAway(t *testing.T) {
	want(t, cluster.under(t, "Consul is unavailable", func(t *testing.T) {
		away(t, append(cluster.Agents, cluster.Consul)...)
	}), 0)
}

func TestInfluxDBAway(t *testing.T) {
	want(t, cluster.under(t, "InfluxDB is unavailable", func(t *testing.T) { away(t, cluster.InfluxDB) }), 0)
}

func TestNomadAway(t *testing.T) {
	want(t, cluster.under(t, "Nomad is unavailable, its clients too", func(t *testing.T) {
		away(t, append(cluster.Clients, cluster.Nomad)...)
	}), 0)
}

func TestNomadClientRestarts(t *testing.T) {
	want(t, cluster.under(t, "a Nomad client restarts", func(t *testing.T) {
		before := fmt.Sprint(harness.Tasks(cluster.Dir))
		cluster.Clients[0].Stop()
		back(t, cluster.Clients[0])
		if after := fmt.Sprint(harness.Tasks(cluster.Dir)); after != before {
			t.Errorf("its tasks did not run on:\n%s\n%s", before, after)
		}
	}), 0)
}

func TestNomadClientIsLost(t *testing.T) {
	cluster.spread(t)
	want(t, cluster.under(t, "a Nomad client is lost with all on it", func(t *testing.T) {
		client, agent := cluster.Clients[1], cluster.Agents[1]
		client.Kill()
		agent.Kill()
		for _, one := range harness.Tasks(filepath.Join(cluster.Dir, client.Name)) {
			signal(t, one.PID, syscall.SIGKILL)
		}
		time.Sleep(*outage)
		back(t, client, agent)
	}), inFlight)
}

// spread sees to it that no Nomad client has all replicas of the model, which earlier faults
// may have driven together. Gateways and schedulers are apart whatever happened.
func (r *world) spread(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, job := range []string{"topsail-gateway", "topsail-scheduler"} {
		if r.crowded(job) != "" {
			t.Errorf("all of %s are on one client", job)
		}
	}
	job := r.Model("1")
	for alloc := r.crowded(job); alloc != ""; alloc = r.crowded(job) {
		t.Logf("all of %s are on one client: moving one", job)
		node := r.node(t, alloc)
		r.eligible(t, node, false)
		if _, err := r.Rig.Jobs.Allocations().Stop(&nomad.Allocation{ID: alloc}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settle)
		require.NoError(t, r.Await(ctx, r.Whole))
		r.eligible(t, node, true)
	}
}

// eligible says whether Nomad may place anything on a node.
func (r *world) eligible(t *testing.T, node string, is bool) {
	t.Helper()
	if _, err := r.Rig.Jobs.Nodes().ToggleEligibility(node, is, nil); err != nil {
		t.Fatal(err)
	}
}

// crowded is an allocation of a job that has all of its allocations on one client;
// empty where they are on several.
func (r *world) crowded(job string) (alloc string) {
	clients := 0
	for _, client := range r.Clients {
		there := false
		for _, one := range harness.Tasks(filepath.Join(r.Dir, client.Name)) {
			if one.Job == job {
				there, alloc = true, one.Alloc
			}
		}
		if there {
			clients++
		}
	}
	if clients > 1 {
		return ""
	}
	return alloc
}

func TestConsulLies(t *testing.T) {
	want(t, cluster.under(t, "Consul lists no sidecar, once", func(t *testing.T) {
		cluster.Liar.Lie.Store(true)
		// Any change of the list makes the gateways ask: here a replica goes and comes.
		cluster.killAllocation(t)
		for begun := time.Now(); cluster.Liar.Lie.Load(); time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 20*time.Second {
				t.Fatal("nobody heard the lie")
			}
		}
		time.Sleep(5 * time.Second)
	}), inFlight)
}

func TestRedisIsFlushed(t *testing.T) {
	want(t, cluster.under(t, "Redis is flushed, then restored", func(t *testing.T) {
		jobs := cluster.jobs(t)
		cluster.redis(t, "FLUSHALL")
		cluster.untilAlarm(t, true)
		time.Sleep(5 * time.Second)
		if now := cluster.jobs(t); now != jobs {
			t.Errorf("jobs were changed: %s, before: %s", now, jobs)
		}
		cluster.restore(t)
		cluster.untilAlarm(t, false)
	}), 0)
}

func TestRedisIsRewound(t *testing.T) {
	want(t, cluster.under(t, "Redis is restored from an old copy", func(t *testing.T) {
		cluster.Redis.Stop()
		old, data := filepath.Join(cluster.Dir, "redis-old"), filepath.Join(cluster.Dir, "redis", "appendonlydir")
		require.NoError(t, os.CopyFS(old, os.DirFS(data)))
		back(t, cluster.Redis)
		// Something that the old copy does not know.
		require.NoError(t, cluster.Apply(t.Context(), cluster.catalog()+"\n[[app]]\nname='later'\ndefault_output='-1'\ninput_type='doubles'\n"))
		time.Sleep(2 * time.Second) // for the snapshots
		cluster.Redis.Stop()
		require.NoError(t, errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(old)), os.RemoveAll(old)))
		back(t, cluster.Redis)
		cluster.untilAlarm(t, true)
		cluster.restore(t)
		cluster.untilAlarm(t, false)
		if cause, err := harness.Ask(cluster.Gateways()[0], "later", 1); err != nil || cause == "" {
			t.Errorf("what came after the old copy is lost: %q, %v", cause, err)
		}
	}), 0)
	require.NoError(t, cluster.Apply(t.Context(), cluster.catalog()))
}

// jobs are all jobs with their counts.
func (r *world) jobs(t *testing.T) string {
	t.Helper()
	list, _, err := r.Rig.Jobs.Jobs().List(nil)
	require.NoError(t, err)
	var b strings.Builder
	for _, stub := range list {
		job, _, err := r.Rig.Jobs.Jobs().Info(stub.ID, nil)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s: %d; ", stub.ID, *job.TaskGroups[0].Count)
	}
	return b.String()
}

// redis sends one command, inline.
func (r *world) redis(t *testing.T, command string) {
	t.Helper()
	conn, err := net.Dial("tcp", r.Redis.Addr)
	require.NoError(t, err)
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 64)
	if n, err := conn.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("+OK")) {
		t.Fatalf("%s: %s %v", command, answer[:n], err)
	}
}

// restore does what the alarm says.
func (r *world) restore(t *testing.T) {
	t.Helper()
	require.NoError(t, r.Command(t.Context(), r.Program, "restore"))
}

// untilAlarm waits until every gateway has raised the alarm about the store, or
// none has.
func (r *world) untilAlarm(t *testing.T, raised bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	want := map[bool]string{true: "topsail_store_alarm 1", false: "topsail_store_alarm 0"}[raised]
	err := r.Await(ctx, func(ctx context.Context) error {
		entries, _, err := r.Services.Health().Service("topsail-gateway", "", true, (&consul.QueryOptions{}).WithContext(ctx))
		if err != nil {
			return err
		}
		for _, e := range entries {
			text, err := get(ctx, "http://"+e.Service.Meta["ops_addr"]+"/metrics")
			if err != nil || !strings.Contains(text, want) {
				return fmt.Errorf("gateway %s does not say %q: %w", e.Service.ID, want, errors.Join(err, harness.ErrDefault))
			}
		}
		return nil
	})
	require.NoError(t, err)
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}
