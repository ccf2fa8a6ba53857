//go:build system

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// TestDoctor takes the servers away one by one.
func TestDoctor(t *testing.T) {
	ports, err := servers.FreePortsForAll()
	require.NoError(t, err)
	c, err := servers.NewCluster(servers.Options{Dir: t.TempDir(), Ports: ports, Clients: 1, HeartbeatGrace: 3 * time.Second})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	require.NoError(t, c.Start(t.Context()))
	t.Setenv("CONSUL_HTTP_ADDR", c.Consul.Addr)
	t.Setenv("NOMAD_ADDR", "http://"+c.Nomad.Addr)
	cfg := setting(t, map[string]string{"redis-addrs": c.Redis.Addr, "influxdb-url": "http://" + c.InfluxDB.Addr})
	register(t, c.Consul.Addr)

	checks, poll := Checks(cfg), time.NewTicker(250*time.Millisecond)
	defer poll.Stop()
	until := func(fails string) []check.Finding { // Nomad takes seconds to find or to miss a client
		for end := time.Now().Add(30 * time.Second); ; <-poll.C {
			all := check.Run(t.Context(), checks)
			if got := failing(all); got == fails {
				return all
			} else if time.Now().After(end) {
				t.Fatalf("%q fail, not %q", got, fails)
			}
		}
	}

	golden(t, "up", until(""))
	for _, down := range []struct {
		server *servers.Server
		fails  string // and those before
	}{
		{c.Redis, "redis"},
		{c.InfluxDB, "redis, influxdb"},
		{c.Clients[0], "redis, nomad nodes, influxdb"},
		{c.Nomad, "redis, nomad, influxdb"},
		{c.Consul, "redis, consul, sidecars, gateways, bundles, nomad, influxdb"},
	} {
		down.server.Stop()
		until(down.fails)
	}
	golden(t, "down", check.Run(t.Context(), checks))
}

// TestDoctorKeepsSecrets: no secret is in what errors say.
func TestDoctorKeepsSecrets(t *testing.T) {
	const secret = "hunter2hunter2"
	for name, value := range map[string]string{
		"REDIS_URL": "redis://ada:" + secret + "@127.0.0.1:1", "INFLUX_HOST": "http://ada:" + secret + "@127.0.0.1:1", "INFLUX_TOKEN": secret,
		"CONSUL_HTTP_ADDR": "http://ada:" + secret + "@127.0.0.1:1", "CONSUL_HTTP_TOKEN": secret, "NOMAD_ADDR": "http://ada:" + secret + "@127.0.0.1:1", "NOMAD_TOKEN": secret,
	} {
		t.Setenv(name, value)
	}
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(secret), 0o600))
	for _, flags := range []map[string]string{nil, {"redis-password-file": file, "influxdb-token-file": file, "nomad-token-file": file}} {
		all := check.Run(t.Context(), Checks(setting(t, flags)))
		if doctor.Fails(all) != len(all) || len(all) != 7 {
			t.Errorf("got %+v", all)
		}
		for _, f := range all {
			if strings.Contains(f.Detail+f.Next, secret) || f.Next == "" {
				t.Errorf("got %+v", f)
			}
		}
	}
}
