package doctor

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestPrint(t *testing.T) {
	all := []check.Finding{check.Good("redis", "version 7"), {Name: "redis clock", State: check.Warn, Detail: "3s ahead", Next: "let NTP set it"}}
	for format, want := range map[string]string{
		"table": "CHECK        STATE  DETAIL     NEXT STEP\nredis        ok     version 7  -\nredis clock  warn   3s ahead   let NTP set it\n",
		"json": `[
  {
    "name": "redis",
    "state": "ok",
    "detail": "version 7"
  },
  {
    "name": "redis clock",
    "state": "warn",
    "detail": "3s ahead",
    "next": "let NTP set it"
  }
]
`,
	} {
		var out bytes.Buffer
		if err := Print(&out, all, format); err != nil || out.String() != want {
			t.Errorf("%s: error %v, got\n%s", format, err, out.String())
		}
	}
	if err := Print(&bytes.Buffer{}, all, "xml"); err == nil {
		t.Error("xml is taken")
	}
}

func TestClock(t *testing.T) {
	if got := Clock("x", nil); got != nil {
		t.Errorf("a clock that is not told: %v", got)
	}
	for ahead, want := range map[time.Duration]check.Finding{
		-1999 * time.Millisecond: {Name: "x", State: check.OK, Detail: "within 2s of this machine's", Next: ""},
		2 * time.Second:          {Name: "x", State: check.Warn, Detail: "2s ahead of this machine's", Next: "synchronize the clocks of both machines with NTP"},
		-time.Minute:             {Name: "x", State: check.Failed, Detail: "1m0s behind this machine's", Next: "synchronize the clocks of both machines with NTP"},
	} {
		if got := Clock("x", &ahead); len(got) != 1 || got[0] != want {
			t.Errorf("%v: got %v", ahead, got)
		}
	}
}

func TestDataDir(t *testing.T) {
	dir := t.TempDir()
	file := testca.Write(t, dir, "file", nil)
	for path, want := range map[string]check.State{dir: check.OK, filepath.Join(dir, "a", "b"): check.OK, file: check.Failed, filepath.Join(file, "c"): check.Failed, "/proc/none": check.Failed} {
		if got := dataDir(path); got.State != want {
			t.Errorf("%s: got %+v", path, got)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it left %v, error %v", left, err)
	}
}

func TestCertificates(t *testing.T) {
	dir, ca := t.TempDir(), testca.New(t, "ca")
	authorities := testca.Write(t, dir, "ca.pem", ca.PEM)
	block := ca.IssueUntil(t, time.Now().Add(20*24*time.Hour), "host")
	other := ca.Issue(t, "other")
	cert, key := testca.Write(t, dir, "cert", block.Cert), testca.Write(t, dir, "key", block.Key)
	set := config.TLS{CertFile: cert, KeyFile: key, CAFile: authorities}
	for name, test := range map[string]struct {
		set  config.TLS
		in   time.Duration
		want []check.State
	}{
		"none":     {config.TLS{}, 0, nil},
		"good":     {set, 0, []check.State{check.OK, check.Warn}}, // the authority ends in an hour
		"soon":     {set, 7 * 24 * time.Hour, []check.State{check.Warn, check.Failed}},
		"ended":    {set, 21 * 24 * time.Hour, []check.State{check.Failed, check.Failed}},
		"no file":  {config.TLS{CertFile: filepath.Join(dir, "none"), KeyFile: key}, 0, []check.State{check.Failed}},
		"no PEM":   {config.TLS{CertFile: key, KeyFile: key}, 0, []check.State{check.Failed}},
		"no pair":  {config.TLS{CertFile: cert, KeyFile: testca.Write(t, dir, "other", other.Key)}, 0, []check.State{check.Failed}},
		"two ends": {config.TLS{CAFile: testca.Write(t, dir, "both", append(block.Cert, ca.PEM...))}, 0, []check.State{check.Warn}},
	} {
		all := certificates(test.set, time.Now().Add(test.in))
		if len(all) != len(test.want) {
			t.Fatalf("%s: got %+v", name, all)
		}
		for i, f := range all {
			if f.State != test.want[i] || (f.Next == "") != (f.State == check.OK) || strings.Contains(f.Detail, "PRIVATE") {
				t.Errorf("%s: got %+v", name, f)
			}
		}
	}
}

func TestPort(t *testing.T) {
	ours := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"status":"ok"}`)) }))
	defer ours.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for addr, want := range map[string]check.State{
		"127.0.0.1:0": check.OK, ours.Listener.Addr().String(): check.OK, other.Listener.Addr().String(): check.Failed, "192.0.2.1:1": check.Failed,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if got := port(ctx, access.TLS{}, "gateway.addr", addr, "/health"); got.State != want {
			t.Errorf("%s: got %+v", addr, got)
		}
		cancel()
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := port(ctx, access.TLS{}, "gateway.addr", silent.Addr().String(), "/health"); got.State != check.Failed {
		t.Errorf("of one that says nothing: got %+v", got)
	}
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.sh"), []byte("#!/bin/sh\n"), 0o700))
	for _, test := range []struct {
		name, dir string
		want      check.State
	}{
		{"sh", "", check.OK}, {"sh", dir, check.OK}, {"./model.sh", dir, check.OK}, {"./model.sh", "", check.Failed},
		{"no-such-program", "", check.Failed}, {"sh", filepath.Join(dir, "none"), check.Failed}, {"sh", filepath.Join(dir, "model.sh"), check.Failed},
	} {
		v := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}}
		v.Container.Command, v.Container.Dir = []string{test.name}, test.dir
		if got := command(v); got.State != test.want || got.Name != "model m:1" {
			t.Errorf("%s in %q: got %+v", test.name, test.dir, got)
		}
	}
	if got := command(&serving.Version{Container: serving.Container{Addr: "127.0.0.1:9"}}); got.State != check.OK {
		t.Errorf("without a command: got %+v", got)
	}
	if got := command(&serving.Version{}); got.State != check.Failed || !strings.Contains(got.Next, "give the version") {
		t.Errorf("with nothing to run: got %+v", got)
	}
}

func TestIsLocal(t *testing.T) {
	for _, test := range []struct {
		flags map[string]string
		env   string
		want  bool
	}{
		{nil, "", true}, {map[string]string{"gateway-addr": "127.0.0.1:1"}, "", true},
		{map[string]string{"redis-addrs": "127.0.0.1:1"}, "", false}, {map[string]string{"jobs-driver": "docker"}, "", false}, {nil, "NOMAD_ADDR", false},
	} {
		cfg, err := config.Load("", []string{"HOME=" + t.TempDir()}, test.flags)
		require.NoError(t, err)
		if got := IsLocal(cfg, func(name string) string { return map[string]string{test.env: "x"}[name] }); got != test.want {
			t.Errorf("%v, %q: got %v", test.flags, test.env, got)
		}
	}
}

// Services that others run are asked whether they are ready.
func TestServices(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/v2/models/m/ready" {
			http.NotFound(w, q)
		}
	}))
	defer server.Close()
	v := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}, Service: &serving.ServiceSpec{Protocol: serving.ServiceOIP, Addrs: []string{server.URL, "127.0.0.1:1"}}}
	found := service(t.Context(), v)
	if len(found) != 2 || found[0].State != check.OK || found[1].State != check.Failed || found[1].Name != "model m:1 at 127.0.0.1:1" {
		t.Errorf("found %+v", found)
	}
	v.Service.ReadyPath = "/ok"
	if found := service(t.Context(), v); found[0].State != check.Failed || !strings.Contains(found[0].Detail, "/ok answered 404") {
		t.Errorf("found %+v", found)
	}
	v.Service = &serving.ServiceSpec{Name: "others"}
	if found := service(t.Context(), v); len(found) != 1 || found[0].State != check.OK || !strings.Contains(found[0].Detail, `"others"`) {
		t.Errorf("found %+v", found)
	}
}
