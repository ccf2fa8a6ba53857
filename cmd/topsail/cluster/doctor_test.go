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

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/test/require"
)

var update = flag.Bool("update", false, "write the golden files")

// setting loads a configuration with these flags.
func setting(t *testing.T, flags map[string]string) *config.Config {
	t.Helper()
	cfg, err := config.Load("", []string{"HOME=" + t.TempDir()}, flags)
	require.NoError(t, err)
	return cfg
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
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
	}
}

func failing(all []check.Finding) string {
	var names []string
	for _, f := range all {
		if f.State == check.Failed {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// changing is what no two runs have in common.
var changing = regexp.MustCompile(`127\.0\.0\.1:\d+|version [^ ,]+|[0-9.]+ MiB`)

func golden(t *testing.T, name string, all []check.Finding) {
	t.Helper()
	for i, f := range all {
		all[i].Name = changing.ReplaceAllString(f.Name, "#")
		all[i].Detail = changing.ReplaceAllString(f.Detail, "#")
	}
	var got bytes.Buffer
	require.NoError(t, doctor.Print(&got, all, "table"))
	file := filepath.Join("testdata", "doctor_"+name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	if err != nil || got.String() != string(want) {
		t.Errorf("%s: error %v, got\n%s", name, err, got.String())
	}
}

func TestJudgeRedis(t *testing.T) {
	good := redisstore.Diagnosis{Version: "7.2", AppendOnly: true, Fsync: "always", Eviction: "noeviction", UsedBytes: 1 << 20}
	for name, test := range map[string]struct {
		change func(*redisstore.Diagnosis)
		check  string
		want   check.State
	}{
		"no bound":    {func(*redisstore.Diagnosis) {}, "redis", check.OK},
		"room":        {func(d *redisstore.Diagnosis) { d.MaxBytes = 2 << 20 }, "redis", check.OK},
		"nearly full": {func(d *redisstore.Diagnosis) { d.MaxBytes = 1<<20 + 1 }, "redis", check.Warn},
		"not told":    {func(d *redisstore.Diagnosis) { d.Info = errors.New("NOPERM") }, "redis", check.Warn},
		"in memory":   {func(d *redisstore.Diagnosis) { d.AppendOnly = false }, "redis durability", check.Failed},
		"by second":   {func(d *redisstore.Diagnosis) { d.Fsync = "everysec" }, "redis durability", check.Warn},
		"unknown":     {func(d *redisstore.Diagnosis) { d.Fsync = "" }, "redis durability", check.OK},
		"evicts":      {func(d *redisstore.Diagnosis) { d.Eviction = "allkeys-lru" }, "redis eviction", check.Failed},
	} {
		d := good
		test.change(&d)
		for _, f := range judgeRedis(d) {
			want := check.OK
			if f.Name == test.check {
				want = test.want
			}
			if f.State != want || (f.Next == "") != (f.State == check.OK) {
				t.Errorf("%s: got %+v", name, f)
			}
		}
	}
}

func TestJudgeCatalog(t *testing.T) {
	for want, state := range map[check.State]redisstore.State{check.OK: {Epoch: "x", Revision: 7}, check.Warn: {}, check.Failed: {Epoch: "x", Alarm: "unreadable"}} {
		if got := judgeCatalog(state, ""); got.State != want {
			t.Errorf("%+v: got %+v", state, got)
		}
	}
	if got := judgeCatalog(redisstore.State{Epoch: "x"}, "lost"); got.State != check.Failed || !strings.Contains(got.Detail, "lost") {
		t.Errorf("got %+v", got)
	}
}

func TestJudgeNomad(t *testing.T) {
	refused := errors.New("Permission denied")
	for name, test := range map[string]struct {
		d             nomadfleet.Diagnosis
		rights, nodes check.State
	}{
		"room":           {nomadfleet.Diagnosis{Nodes: &nomadfleet.Nodes{All: 2, Ready: 1, WithDriver: 1}}, check.OK, check.OK},
		"full":           {nomadfleet.Diagnosis{Nodes: &nomadfleet.Nodes{All: 1, Ready: 1, WithDriver: 1}, Lacking: "memory"}, check.OK, check.Failed},
		"no driver":      {nomadfleet.Diagnosis{Nodes: &nomadfleet.Nodes{All: 1, Ready: 1}}, check.OK, check.Failed},
		"least rights":   {nomadfleet.Diagnosis{}, check.OK, check.OK},
		"least and full": {nomadfleet.Diagnosis{Lacking: "memory"}, check.OK, check.Failed},
		"no rights":      {nomadfleet.Diagnosis{List: refused, Plan: refused}, check.Failed, check.Warn},
		"no plan":        {nomadfleet.Diagnosis{Plan: refused}, check.Failed, check.Warn},
	} {
		all := judgeNomad(test.d, config.Jobs{Driver: "raw_exec"})
		if len(all) != 3 || all[1].State != test.rights || all[2].State != test.nodes {
			t.Errorf("%s: got %+v", name, all)
		}
	}
}
