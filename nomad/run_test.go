//go:build servers

package nomad

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"
	nomadapi "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// run runs the job of a role, with the test's own binary as topsail unless v says
// otherwise, and stops it with the test. The tests that run jobs do not run side by
// side: their ids are the same.
func (c *cluster) run(t *testing.T, role string, v variables) *nomadapi.Job {
	t.Helper()
	job, err := c.parse(t, role, with(variables{"namespace": namespace}, v))
	require.NoError(t, err)
	if _, _, err := c.root.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.end(t, *job.ID) })
	return job
}

// end stops a job and waits until its service is gone.
func (c *cluster) end(t *testing.T, id string) {
	t.Helper()
	if _, _, err := c.root.Jobs().Deregister(id, true, nil); err != nil {
		t.Error(err)
	}
	c.ready(t, id, 0)
}

// convergence is how long Nomad and Consul may take to agree on a service, should a
// call between them fail: each looks at the whole again once a minute.
const convergence = 3 * time.Minute

// ready waits for n instances of a service that pass their checks.
func (c *cluster) ready(t *testing.T, service string, n int) []*consulapi.ServiceEntry {
	t.Helper()
	var found []*consulapi.ServiceEntry
	health := c.consulAs(t, c.consulRoot).Health()
	err := poll(context.WithoutCancel(t.Context()), convergence, func() (err error) { // in a cleanup, too
		if found, _, err = health.Service(service, "", true, nil); err != nil {
			return err
		}
		if len(found) != n {
			return fmt.Errorf("%d instances of %s are ready, want %d", len(found), service, n)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s%s%s%s", err, c.events(service), c.nomad.LogTail(), c.client.LogTail(), c.consul.LogTail())
	}
	return found
}

// events are what the tasks of a job went through, for people who read a failure.
func (c *cluster) events(id string) string {
	allocs, _, err := c.root.Jobs().Allocations(id, true, nil)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, a := range allocs {
		for task, state := range a.TaskStates {
			for _, e := range state.Events {
				fmt.Fprintf(&b, "%s: %s\n", task, e.DisplayMessage)
			}
		}
	}
	return b.String()
}

// self is the path of the test's own binary, which stands in for topsail.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// environment asks a stand-in for its environment.
func environment(t *testing.T, client *http.Client, base string) map[string]string {
	t.Helper()
	resp, err := client.Get(base + "/environment")
	require.NoError(t, err)
	defer resp.Body.Close()
	var env map[string]string
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&env))
	return env
}

// TestGatewayLeavesBeforeItStops: whoever finds gateways through Consul has
// the shutdown_delay to turn to another one.
func TestGatewayLeavesBeforeItStops(t *testing.T) {
	c := shared
	c.run(t, "gateway", variables{"program": self(t), "port": 0, "shutdown_delay": "5s"})
	ops := c.ready(t, "topsail-gateway", 1)[0].Service.Meta["ops_addr"]
	c.end(t, "topsail-gateway")
	environment(t, http.DefaultClient, "http://"+ops)
}

// TestClosedGatewayRuns downloads the program, and takes keys and certificates from
// a Nomad variable.
func TestClosedGatewayRuns(t *testing.T) {
	c := shared
	text, err := os.ReadFile(self(t))
	require.NoError(t, err)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	t.Cleanup(files.Close)
	cert, key, client := certificate(t)
	secrets := nomadapi.VariableItems{"cert": cert, "key": key, "keys": "ann:0123456789", "ops_keys": "prometheus:abcdef"}
	if _, _, err := c.root.Variables().Create(&nomadapi.Variable{Path: "nomad/jobs/topsail-gateway", Items: secrets}, nil); err != nil {
		t.Fatal(err)
	}
	c.run(t, "gateway", variables{
		"type": "system", "port": 0, "shutdown_delay": "0s",
		"program": files.URL + "/topsail", "checksum": fmt.Sprintf("sha256:%x", sha256.Sum256(text)),
		"secrets":   []string{"cert", "key", "keys", "ops_keys"},
		"cert_file": "${NOMAD_SECRETS_DIR}/cert", "key_file": "${NOMAD_SECRETS_DIR}/key",
		"keys_file": "${NOMAD_SECRETS_DIR}/keys", "ops_keys_file": "${NOMAD_SECRETS_DIR}/ops_keys",
	})
	s := c.ready(t, "topsail-gateway", 1)[0].Service
	env := environment(t, client, s.Meta["scheme"]+"://"+s.Meta["ops_addr"])
	for name, want := range map[string]string{"TOPSAIL_GATEWAY_KEYS_FILE": secrets["keys"], "TOPSAIL_OPS_KEYS_FILE": secrets["ops_keys"]} {
		if got, err := os.ReadFile(env[name]); err != nil || string(got) != want {
			t.Errorf("the file of %s: %v, %q, want %q", name, err, got, want)
		}
		if info, err := os.Stat(env[name]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("others may read the file of %s", name)
		}
	}
}

// TestStreamsRun: the file is written where the program looks for it.
func TestStreamsRun(t *testing.T) {
	c := shared
	c.run(t, "stream", variables{"program": self(t), "count": 2, "config": "secrets = '{{ env \"NOMAD_SECRETS_DIR\" }}'\n"})
	names := map[string]bool{}
	for _, instance := range c.ready(t, "topsail-stream", 2) {
		env := environment(t, http.DefaultClient, "http://"+instance.Service.Meta["ops_addr"])
		text, err := os.ReadFile(env["TOPSAIL_CONFIG"])
		if err != nil || env["role"] != "stream" || string(text) != "secrets = '"+env["NOMAD_SECRETS_DIR"]+"'\n" {
			t.Errorf("%q reads %s: %q, %v", env["role"], env["TOPSAIL_CONFIG"], text, err)
		}
		names[env["TOPSAIL_STREAMS_NAME"]] = true
	}
	if !names["global-"+namespace+"-topsail-stream-0"] || !names["global-"+namespace+"-topsail-stream-1"] {
		t.Errorf("the members are %v", names)
	}
}

func TestRedisRuns(t *testing.T) {
	c := shared
	port, err := servers.FreePort()
	require.NoError(t, err)
	c.run(t, "redis", variables{"port": port})
	if s := c.ready(t, "topsail-redis", 1)[0].Service; s.Port != port {
		t.Errorf("it is on port %d, want %d", s.Port, port)
	}
}

// TestInfluxDBRuns also finds the database, which keeps data for a week.
func TestInfluxDBRuns(t *testing.T) {
	c := shared
	program, err := servers.Binary("influxd")
	require.NoError(t, err)
	port, err := servers.FreePort()
	require.NoError(t, err)
	c.run(t, "influxdb", variables{"program": program, "port": port})
	c.ready(t, "topsail-influxdb", 1)
	query := url.Values{"q": {`SHOW RETENTION POLICIES ON "topsail"`}}
	err = poll(t.Context(), time.Minute, func() error {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/query?%s", port, query.Encode()))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(answer), `["autogen","168h0m0s"`) {
			err = errors.New(string(answer))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
