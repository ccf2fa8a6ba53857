package doctor

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/serving"
)

// TestRun: checks run side by side, each for at most its time, and their order stays.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) []Finding {
			<-ctx.Done()
			return []Finding{Broken(ctx, "hangs", ctx.Err(), "wait")}
		}
		begun := time.Now()
		all := Run(t.Context(), []Check{hangs, func(context.Context) []Finding {
			return []Finding{Good("one", "a\n\tb"), Broken(t.Context(), "two", errors.New(`dial "http://ada:secret@host:1"`), "")}
		}, hangs})
		if took := time.Since(begun); took != Within {
			t.Errorf("took %v", took)
		}
		want := []Finding{
			{"hangs", Fail, "no answer within 5s", "wait"}, {"one", OK, "a b", ""},
			{"two", Fail, `dial "http://host:1"`, ""}, {"hangs", Fail, "no answer within 5s", "wait"},
		}
		for i := range want {
			if len(all) != len(want) || all[i] != want[i] {
				t.Fatalf("got %+v", all)
			}
		}
		if n := Fails(all); n != 3 {
			t.Errorf("%d fail", n)
		}
	})
}

func TestPrint(t *testing.T) {
	all := []Finding{Good("redis", "version 7"), {"redis clock", Warn, "3s ahead", "let NTP set it"}}
	for format, want := range map[string]string{
		"table": "CHECK        STATE  DETAIL     NEXT STEP\nredis        ok     version 7  -\nredis clock  warn   3s ahead   let NTP set it\n",
		"json": `[
  {
    "check": "redis",
    "state": "ok",
    "detail": "version 7"
  },
  {
    "check": "redis clock",
    "state": "warn",
    "detail": "3s ahead",
    "next_step": "let NTP set it"
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
	for ahead, want := range map[time.Duration]Finding{
		-1999 * time.Millisecond: {"x", OK, "within 2s of this machine's", ""},
		2 * time.Second:          {"x", Warn, "2s ahead of this machine's", "synchronize the clocks of both machines with NTP"},
		-time.Minute:             {"x", Fail, "1m0s behind this machine's", "synchronize the clocks of both machines with NTP"},
	} {
		if got := Clock("x", &ahead); len(got) != 1 || got[0] != want {
			t.Errorf("%v: got %v", ahead, got)
		}
	}
}

func TestDataDir(t *testing.T) {
	dir := t.TempDir()
	file := testca.Write(t, dir, "file", nil)
	for path, want := range map[string]State{dir: OK, filepath.Join(dir, "a", "b"): OK, file: Fail, filepath.Join(file, "c"): Fail, "/proc/none": Fail} {
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
		want []State
	}{
		"none":     {config.TLS{}, 0, nil},
		"good":     {set, 0, []State{OK, Warn}}, // the authority ends in an hour
		"soon":     {set, 7 * 24 * time.Hour, []State{Warn, Fail}},
		"ended":    {set, 21 * 24 * time.Hour, []State{Fail, Fail}},
		"no file":  {config.TLS{CertFile: filepath.Join(dir, "none"), KeyFile: key}, 0, []State{Fail}},
		"no PEM":   {config.TLS{CertFile: key, KeyFile: key}, 0, []State{Fail}},
		"no pair":  {config.TLS{CertFile: cert, KeyFile: testca.Write(t, dir, "other", other.Key)}, 0, []State{Fail}},
		"two ends": {config.TLS{CAFile: testca.Write(t, dir, "both", append(block.Cert, ca.PEM...))}, 0, []State{Warn}},
	} {
		all := certificates(test.set, time.Now().Add(test.in))
		if len(all) != len(test.want) {
			t.Fatalf("%s: got %+v", name, all)
		}
		for i, f := range all {
			if f.State != test.want[i] || (f.Next == "") != (f.State == OK) || strings.Contains(f.Detail, "PRIVATE") {
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
	for addr, want := range map[string]State{
		"127.0.0.1:0": OK, ours.Listener.Addr().String(): OK, other.Listener.Addr().String(): Fail, "192.0.2.1:1": Fail,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if got := port(ctx, access.TLS{}, "gateway.addr", addr, "/health"); got.State != want {
			t.Errorf("%s: got %+v", addr, got)
		}
		cancel()
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := port(ctx, access.TLS{}, "gateway.addr", silent.Addr().String(), "/health"); got.State != Fail {
		t.Errorf("of one that says nothing: got %+v", got)
	}
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.sh"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, dir string
		want      State
	}{
		{"sh", "", OK}, {"sh", dir, OK}, {"./model.sh", dir, OK}, {"./model.sh", "", Fail},
		{"no-such-program", "", Fail}, {"sh", filepath.Join(dir, "none"), Fail}, {"sh", filepath.Join(dir, "model.sh"), Fail},
	} {
		v := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}}
		v.Container.Command, v.Container.Dir = []string{test.name}, test.dir
		if got := command(v); got.State != test.want || got.Check != "model m:1" {
			t.Errorf("%s in %q: got %+v", test.name, test.dir, got)
		}
	}
	if got := command(&serving.Version{Container: serving.Container{Addr: "127.0.0.1:9"}}); got.State != OK {
		t.Errorf("without a command: got %+v", got)
	}
	if got := command(&serving.Version{}); got.State != Fail || !strings.Contains(got.Next, "give the version") {
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
		if err != nil {
			t.Fatal(err)
		}
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
	if len(found) != 2 || found[0].State != OK || found[1].State != Fail || found[1].Check != "model m:1 at 127.0.0.1:1" {
		t.Errorf("found %+v", found)
	}
	v.Service.ReadyPath = "/ok"
	if found := service(t.Context(), v); found[0].State != Fail || !strings.Contains(found[0].Detail, "/ok answered 404") {
		t.Errorf("found %+v", found)
	}
	v.Service = &serving.ServiceSpec{Name: "others"}
	if found := service(t.Context(), v); len(found) != 1 || found[0].State != OK || !strings.Contains(found[0].Detail, `"others"`) {
		t.Errorf("found %+v", found)
	}
}
