package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	consul "github.com/hashicorp/consul/api"

	"topsail/internal/servers"
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
	for i := len(list) - 1; i >= 0; i-- {
		if err := list[i].Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRedisAway(t *testing.T) {
	world.under(t, "Redis is away; a gateway is restarted", func(t *testing.T) {
		world.Redis.Stop()
		signal(t, world.pick(t, "topsail-gateway", "gateway").pid, syscall.SIGKILL)
		time.Sleep(*outage)
		if err := world.twoGateways(t.Context()); err != nil {
			t.Errorf("the gateway does not start from the last good state: %v", err)
		}
		back(t, world.Redis)
	}).want(t, 0)
}

func TestConsulAway(t *testing.T) {
	world.under(t, "Consul is away", func(t *testing.T) {
		away(t, append(world.Agents, world.Consul)...)
	}).want(t, 0)
}

func TestInfluxDBAway(t *testing.T) {
	world.under(t, "InfluxDB is away", func(t *testing.T) { away(t, world.InfluxDB) }).want(t, 0)
}

func TestNomadAway(t *testing.T) {
	world.under(t, "Nomad is away, its clients too", func(t *testing.T) {
		away(t, append(world.Clients, world.Nomad)...)
	}).want(t, 0)
}

func TestNomadClientRestarts(t *testing.T) {
	world.under(t, "a Nomad client restarts", func(t *testing.T) {
		before := fmt.Sprint(tasks(world.dir))
		world.Clients[0].Stop()
		back(t, world.Clients[0])
		if after := fmt.Sprint(tasks(world.dir)); after != before {
			t.Errorf("its tasks did not run on:\n%s\n%s", before, after)
		}
	}).want(t, 0)
}

func TestNomadClientIsLost(t *testing.T) {
	world.under(t, "a Nomad client is lost with all on it", func(t *testing.T) {
		client, agent := world.Clients[1], world.Agents[1]
		client.Kill()
		agent.Kill()
		for _, one := range tasks(filepath.Join(world.dir, client.Name)) {
			signal(t, one.pid, syscall.SIGKILL)
		}
		time.Sleep(*outage)
		back(t, client, agent)
	}).want(t, inFlight)
}

func TestConsulLies(t *testing.T) {
	world.under(t, "Consul lists no sidecar, once", func(t *testing.T) {
		world.liar.lie.Store(true)
		// Any change of the list makes the gateways ask.
		signal(t, world.pick(t, world.model("1"), "container").pid, syscall.SIGKILL)
		time.Sleep(5 * time.Second)
		if world.liar.lie.Load() {
			t.Error("nobody heard the lie")
		}
	}).want(t, inFlight)
}

func TestRedisIsFlushed(t *testing.T) {
	world.under(t, "Redis is flushed, then restored", func(t *testing.T) {
		jobs := world.jobs(t)
		world.redis(t, "FLUSHALL")
		world.untilAlarm(t, true)
		time.Sleep(5 * time.Second)
		if now := world.jobs(t); now != jobs {
			t.Errorf("jobs were changed: %s, before: %s", now, jobs)
		}
		world.restore(t)
		world.untilAlarm(t, false)
	}).want(t, 0)
}

func TestRedisIsRewound(t *testing.T) {
	world.under(t, "Redis is restored from an old copy", func(t *testing.T) {
		world.Redis.Stop()
		old, data := filepath.Join(world.dir, "redis-old"), filepath.Join(world.dir, "redis", "appendonlydir")
		if err := os.CopyFS(old, os.DirFS(data)); err != nil {
			t.Fatal(err)
		}
		back(t, world.Redis)
		// Something that the old copy does not know.
		if err := world.apply(t.Context(), world.catalog(replicas)+"\n[[app]]\nname='later'\ninput_type='doubles'\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // for the snapshots
		world.Redis.Stop()
		if err := errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(old)), os.RemoveAll(old)); err != nil {
			t.Fatal(err)
		}
		back(t, world.Redis)
		world.untilAlarm(t, true)
		world.restore(t)
		world.untilAlarm(t, false)
		if cause, err := ask(plain, world.gateways()[0], "later", 1); err != nil || cause == "" {
			t.Errorf("what came after the old copy is lost: %q, %v", cause, err)
		}
	}).want(t, 0)
	if err := world.apply(t.Context(), world.catalog(replicas)); err != nil {
		t.Fatal(err)
	}
}

// jobs are all jobs with their counts.
func (r *rig) jobs(t *testing.T) string {
	t.Helper()
	list, _, err := r.nomad.Jobs().List(nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, stub := range list {
		job, _, err := r.nomad.Jobs().Info(stub.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s: %d; ", stub.ID, *job.TaskGroups[0].Count)
	}
	return b.String()
}

// redis sends one command, inline.
func (r *rig) redis(t *testing.T, command string) {
	t.Helper()
	conn, err := dialer.DialContext(t.Context(), "tcp", r.Redis.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 64)
	if n, err := conn.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("+OK")) {
		t.Fatalf("%s: %s %v", command, answer[:n], err)
	}
}

// restore does what the alarm says, with the snapshot of a gateway.
func (r *rig) restore(t *testing.T) {
	t.Helper()
	snapshots, err := filepath.Glob(filepath.Join(r.dir, "nomad-client-*", "data", "alloc", "*", "alloc", "data", "gateway.snapshot"))
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("the gateways have kept no snapshot: %v", err)
	}
	if err := r.command(t.Context(), r.topsail, "restore", "--snapshot", snapshots[0]); err != nil {
		t.Fatal(err)
	}
}

// untilAlarm waits until every gateway has raised the alarm about the store, or
// none has.
func (r *rig) untilAlarm(t *testing.T, raised bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	want := map[bool]string{true: "topsail_store_alarm 1", false: "topsail_store_alarm 0"}[raised]
	err := r.await(ctx, func(ctx context.Context) error {
		entries, _, err := r.consul.Health().Service("topsail-gateway", "", true, (&consul.QueryOptions{}).WithContext(ctx))
		if err != nil {
			return err
		}
		for _, e := range entries {
			text, err := get(ctx, "http://"+e.Service.Meta["ops_addr"]+"/metrics")
			if err != nil || !strings.Contains(text, want) {
				return fmt.Errorf("gateway %s does not say %q: %w", e.Service.ID, want, errors.Join(err, errDefault))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := plain.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}
