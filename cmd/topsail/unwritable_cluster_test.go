//go:build system

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
)

// TestARedisThatTakesNoWritesIsACondition takes a Redis its memory: the processes of a cluster that
// have tried to write say so, with the reason, until it takes writes again.
func TestARedisThatTakesNoWritesIsACondition(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	free := func() string {
		port, err := servers.FreePort()
		require.NoError(t, err)
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	port, err := servers.FreePort()
	require.NoError(t, err)
	server, err := servers.Redis(dir, port)
	if err == nil {
		err = server.Start(t.Context())
	}
	require.NoError(t, err)
	t.Cleanup(server.Kill)
	edge, admin := free(), free()
	ops, roles := map[string]string{}, map[string]*role{}
	for name, flags := range map[string][]string{"gateway": {"--gateway-addr", edge}, "web": {"--web-addr", admin}, "scheduler": nil} {
		ops[name] = free()
		p := &role{}
		p.cmd = exec.Command(programs.topsail, append([]string{
			name, "--redis-addrs", server.Addr, "--ops-addr", ops[name], "--data-dir", filepath.Join(dir, name), "--log-format", "json",
		}, flags...)...)
		p.cmd.Env = append(os.Environ(), "CONSUL_HTTP_ADDR=127.0.0.1:1", "NOMAD_ADDR=http://127.0.0.1:1") // there are none
		p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
		require.NoError(t, p.cmd.Start())
		roles[name] = p
		t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	}
	page := func(name, path string) string {
		response, err := http.Get("http://" + ops[name] + path)
		if err != nil {
			return ""
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return string(text)
	}
	o := &operator{t: t, env: []string{"TOPSAIL_ADMIN_URL=http://" + admin}, client: http.DefaultClient}
	create := func(name string) (int, string) {
		status, text := o.send(http.MethodPost, "/apps", `{"name":"`+name+`","input_type":"doubles","latency_slo_micros":20000,"default_output":"-1"}`)
		return status, string(text)
	}
	query := func() bool {
		response, err := http.Post("http://"+edge+"/a/predict", "application/json", strings.NewReader(`{"input":[1]}`))
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
	wait.Until(t, "answer of management", func() bool { return page("web", "/health/ready") != "" })
	if status, text := create("a"); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	for name := range roles {
		wait.Until(t, "metric of "+name, func() bool { return strings.Contains(page(name, "/metrics"), "topsail_store_unwritable 0") })
	}
	wait.Until(t, "answer of the gateway", query)

	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	const reason = "redis has no memory left: raise its maxmemory"
	for range 3 {
		if status, text := create("b"); status != http.StatusServiceUnavailable || !strings.Contains(text, reason) {
			t.Errorf("a change gets %d %s", status, text)
		}
	}
	says := func(name string) bool {
		return strings.Contains(page(name, "/health/ready"), "nothing can be written: "+reason) && strings.Contains(page(name, "/metrics"), "topsail_store_unwritable 1")
	}
	wait.Until(t, "condition of management", func() bool { return says("web") })
	wait.Until(t, "condition of the gateway", func() bool { return query() && says("gateway") }) // its report of usage is refused
	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	for _, name := range []string{"web", "gateway"} {
		wait.Until(t, "end of the condition of "+name, func() bool {
			return !strings.Contains(page(name, "/health/ready"), "nothing can be written") && strings.Contains(page(name, "/metrics"), "topsail_store_unwritable 0")
		})
		if n := strings.Count(roles[name].out.String(), "redis takes no writes"); n != 1 {
			t.Errorf("%s: %d lines in the log:\n%s", name, n, roles[name].out.String())
		}
	}
	if status, text := create("b"); status != http.StatusCreated {
		t.Errorf("afterwards: %d %s", status, text)
	}
}
