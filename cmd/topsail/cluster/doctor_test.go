package cluster

import (
	"bytes"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/test/servers"
)

var update = flag.Bool("update", false, "write the golden files")

// setting loads a configuration with these flags.
func setting(t *testing.T, flags map[string]string) *config.Config {
	t.Helper()
	cfg, err := config.Load("", []string{"HOME=" + t.TempDir()}, flags)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestDoctor takes the servers away one by one.
func TestDoctor(t *testing.T) {
	ports, err := servers.FreePortsForAll()
	if err != nil {
		t.Fatal(err)
	}
	c, err := servers.NewCluster(servers.Options{Dir: t.TempDir(), Ports: ports, Clients: 1, HeartbeatGrace: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONSUL_HTTP_ADDR", c.Consul.Addr)
	t.Setenv("NOMAD_ADDR", "http://"+c.Nomad.Addr)
	cfg := setting(t, map[string]string{"redis-addrs": c.Redis.Addr, "influxdb-url": "http://" + c.InfluxDB.Addr})
	register(t, c.Consul.Addr)

	checks, poll := Checks(cfg), time.NewTicker(250*time.Millisecond)
	defer poll.Stop()
	until := func(fails string) []doctor.Finding { // Nomad takes seconds to find or to miss a client
		for end := time.Now().Add(30 * time.Second); ; <-poll.C {
			all := doctor.Run(t.Context(), checks)
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
	golden(t, "down", doctor.Run(t.Context(), checks))
}

// register has Consul know a gateway and a management process that answer, and a sidecar.
func register(t *testing.T, consul string) {
	t.Helper()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
		}
		w.Write([]byte(`{"status":"ok"}`))
	}))
	t.Cleanup(gateway.Close)
	_, port, _ := strings.Cut(gateway.Listener.Addr().String(), ":")
	for _, name := range []string{gatewayService, webService, "topsail-sidecar"} {
		body := strings.NewReader(`{"Name":"` + name + `","Address":"127.0.0.1","Port":` + port + `}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+consul+"/v1/agent/service/register", body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
	}
}

func failing(all []doctor.Finding) string {
	var names []string
	for _, f := range all {
		if f.State == doctor.Fail {
			names = append(names, f.Check)
		}
	}
	return strings.Join(names, ", ")
}

// changing is what no two runs have in common.
var changing = regexp.MustCompile(`127\.0\.0\.1:\d+|version [^ ,]+|[0-9.]+ MiB`)

func golden(t *testing.T, name string, all []doctor.Finding) {
	t.Helper()
	for i, f := range all {
		all[i].Check = changing.ReplaceAllString(f.Check, "#")
		all[i].Detail = changing.ReplaceAllString(f.Detail, "#")
	}
	var got bytes.Buffer
	if err := doctor.Print(&got, all, "table"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "doctor_"+name+".txt")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got.String() != string(want) {
		t.Errorf("%s: error %v, got\n%s", name, err, got.String())
	}
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
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range []map[string]string{nil, {"redis-password-file": file, "influxdb-token-file": file, "nomad-token-file": file}} {
		all := doctor.Run(t.Context(), Checks(setting(t, flags)))
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

func TestJudgeRedis(t *testing.T) {
	good := redisstore.Diagnosis{Version: "7.2", AppendOnly: true, Fsync: "always", Eviction: "noeviction", UsedBytes: 1 << 20}
	for name, test := range map[string]struct {
		change func(*redisstore.Diagnosis)
		check  string
		want   doctor.State
	}{
		"no bound":    {func(*redisstore.Diagnosis) {}, "redis", doctor.OK},
		"room":        {func(d *redisstore.Diagnosis) { d.MaxBytes = 2 << 20 }, "redis", doctor.OK},
		"nearly full": {func(d *redisstore.Diagnosis) { d.MaxBytes = 1<<20 + 1 }, "redis", doctor.Warn},
		"not told":    {func(d *redisstore.Diagnosis) { d.Info = errors.New("NOPERM") }, "redis", doctor.Warn},
		"in memory":   {func(d *redisstore.Diagnosis) { d.AppendOnly = false }, "redis durability", doctor.Fail},
		"by second":   {func(d *redisstore.Diagnosis) { d.Fsync = "everysec" }, "redis durability", doctor.Warn},
		"unknown":     {func(d *redisstore.Diagnosis) { d.Fsync = "" }, "redis durability", doctor.OK},
		"evicts":      {func(d *redisstore.Diagnosis) { d.Eviction = "allkeys-lru" }, "redis eviction", doctor.Fail},
	} {
		d := good
		test.change(&d)
		for _, f := range judgeRedis(d) {
			want := doctor.OK
			if f.Check == test.check {
				want = test.want
			}
			if f.State != want || (f.Next == "") != (f.State == doctor.OK) {
				t.Errorf("%s: got %+v", name, f)
			}
		}
	}
}

func TestJudgeCatalog(t *testing.T) {
	for want, state := range map[doctor.State]redisstore.State{doctor.OK: {Epoch: "x", Revision: 7}, doctor.Warn: {}, doctor.Fail: {Epoch: "x", Alarm: "unreadable"}} {
		if got := judgeCatalog(state, ""); got.State != want {
			t.Errorf("%+v: got %+v", state, got)
		}
	}
	if got := judgeCatalog(redisstore.State{Epoch: "x"}, "lost"); got.State != doctor.Fail || !strings.Contains(got.Detail, "lost") {
		t.Errorf("got %+v", got)
	}
}

func TestJudgeNomad(t *testing.T) {
	refused := errors.New("Permission denied")
	for name, test := range map[string]struct {
		d             nomadfleet.Diagnosis
		rights, nodes doctor.State
	}{
		"room":           {nomadfleet.Diagnosis{Nodes: &nomadfleet.Nodes{All: 2, Ready: 1, WithDriver: 1}}, doctor.OK, doctor.OK},
		"full":           {nomadfleet.Diagnosis{Nodes: &nomadfleet.Nodes{All: 1, Ready: 1, WithDriver: 1}, Lacking: "memory"}, doctor.OK, doctor.Fail},
		"no driver":      {nomadfleet.Diagnosis{Nodes: &nomadfleet.Nodes{All: 1, Ready: 1}}, doctor.OK, doctor.Fail},
		"least rights":   {nomadfleet.Diagnosis{}, doctor.OK, doctor.OK},
		"least and full": {nomadfleet.Diagnosis{Lacking: "memory"}, doctor.OK, doctor.Fail},
		"no rights":      {nomadfleet.Diagnosis{List: refused, Plan: refused}, doctor.Fail, doctor.Warn},
		"no plan":        {nomadfleet.Diagnosis{Plan: refused}, doctor.Fail, doctor.Warn},
	} {
		all := judgeNomad(test.d, config.Jobs{Driver: "raw_exec"})
		if len(all) != 3 || all[1].State != test.rights || all[2].State != test.nodes {
			t.Errorf("%s: got %+v", name, all)
		}
	}
}
