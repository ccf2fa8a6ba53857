package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// user is an environment without settings.
var user = []string{"HOME=/home/ada", "PATH=/bin"}

// loadText loads text as if it stood in /etc/topsail/topsail.toml and had been
// named topsail.toml.
func loadText(text string, environ []string, flags map[string]string) (*Config, error) {
	f, err := parseFile("topsail.toml", "/etc/topsail", []byte(text))
	if err != nil {
		return nil, err
	}
	return load(f, parseEnviron(environ), flags)
}

func mustLoad(t *testing.T, text string, environ []string, flags map[string]string) *Config {
	t.Helper()
	c, err := loadText(text, environ, flags)
	require.NoError(t, err)
	return c
}

func readTestdata(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

func TestNothingConfigured(t *testing.T) {
	c := mustLoad(t, "", user, nil)
	want := withDefaults(Options{
		DataDir: "/home/ada/.local/state/topsail",
		Gateway: Gateway{
			Addr:           "127.0.0.1:1337",
			CacheBytes:     32 << 20,
			MaxBodyBytes:   16 << 20,
			MaxBatch:       4096,
			MaxConnections: 4096,
			DrainTimeout:   10 * time.Second,
		},
		Web: Web{Addr: "127.0.0.1:1338", MaxConnections: 1024},
		Ops: Ops{Addr: "127.0.0.1:1390", MaxConnections: 256},
		Log: Log{Level: "info", Format: "auto"},
	})
	equal(t, "options", c.Options, want)
	if c.Apps != nil || c.Versions != nil || len(c.Current) != 0 || c.Warnings != nil {
		t.Errorf("got apps %v, versions %v, current %v, warnings %v", c.Apps, c.Versions, c.Current, c.Warnings)
	}
}

func TestEveryKey(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "topsail.toml"), user, nil)
	wantOptions := withDefaults(Options{
		DataDir: "/etc/topsail/state",
		Gateway: Gateway{
			Addr:             "127.0.0.1:1437",
			GRPCAddr:         "127.0.0.1:1439",
			CacheBytes:       1000000,
			ExposeModels:     true,
			MaxBodyBytes:     65536,
			MaxBatch:         16,
			MaxInflightBytes: 64 << 20,
			MaxConnections:   100,
			MaxPerAddress:    50,
			Hosts:            []string{"gw.example"},
			AllowedOrigins:   []string{"https://shop.example"},
			DrainTimeout:     2500 * time.Millisecond,
		},
		Web: Web{Addr: "[::1]:1438", MaxConnections: 1024},
		Ops: Ops{Addr: "localhost:1490", MaxConnections: 256},
		Log: Log{Level: "debug", Format: "json"},
	})
	wantApps := []*serving.App{{
		Name:          "wine",
		InputType:     serving.Doubles,
		DefaultOutput: "-1",
		SLO:           serving.Duration(50 * time.Millisecond),
		Models:        []string{"wine-forest", "wine-boost"},
		Example:       "[14.2, 1.7]",
		Policy:        serving.PolicySpec{Kind: "single"},
		Cache:         serving.CacheSpec{Round: 0.01, TTL: serving.Duration(time.Minute)},
		Origin:        serving.FromFile,
	}, {
		Name:          "sentiment",
		InputType:     serving.Strings,
		DefaultOutput: "0.0",
		SLO:           serving.Duration(100 * time.Millisecond),
		Origin:        serving.FromFile,
	}}
	wantVersions := []*serving.Version{{
		ModelID:     serving.ModelID{Model: "wine-forest", Version: "1"},
		InputType:   serving.Doubles,
		InputLength: 13,
		Labels:      []string{"sklearn"},
		Replicas:    2,
		Batch:       serving.BatchSpec{Strategy: "fixed", MaxSize: 32, Delay: serving.Duration(500 * time.Microsecond), Pad: true},
		Container: serving.Container{
			Command: []string{"python3", "-m", "wine"},
			Dir:     "/etc/topsail/models/wine",
			Env:     map[string]string{"OMP_NUM_THREADS": "1", "API_KEY": "hunter2"},
			Watch:   []string{"/etc/topsail/models/wine", "/srv/wine.pkl"},
		},
		Origin: serving.FromFile,
	}, {
		ModelID:   serving.ModelID{Model: "wine-forest", Version: "2"},
		InputType: serving.Doubles,
		Replicas:  1,
		Container: serving.Container{Command: []string{"./serve"}, Dir: "/etc/topsail"},
		Origin:    serving.FromFile,
	}, {
		ModelID:   serving.ModelID{Model: "wine-boost", Version: "2024-06"},
		InputType: serving.Doubles,
		Batch:     serving.BatchSpec{Strategy: "quantile"},
		Container: serving.Container{Addr: "10.0.0.7:7001", Protocol: "v1", Connections: 4},
		Origin:    serving.FromFile,
	}}
	wantCurrent := map[string]string{"wine-forest": "1", "wine-boost": "2024-06"}

	equal(t, "options", c.Options, wantOptions)
	equal(t, "apps", c.Apps, wantApps)
	equal(t, "versions", c.Versions, wantVersions)
	equal(t, "current", c.Current, wantCurrent)

	// A key that is added belongs into the example too.
	shown := map[string]bool{}
	cluster := mustLoad(t, readTestdata(t, "cluster.toml"), user, nil)
	policies := mustLoad(t, readTestdata(t, "policies.toml"), user, nil)
	streams := mustLoad(t, readTestdata(t, "streams.toml"), user, nil)
	for _, s := range slices.Concat(c.Settings(), cluster.Settings(), streams.Settings(), policies.Settings()) {
		name := regexp.MustCompile(`\[\d+\]`).ReplaceAllString(s.Name, "")
		shown[name] = shown[name] || s.Source != sourceDefault
	}
	for _, k := range Keys() {
		if !shown[k.Name] {
			t.Errorf("none of topsail.toml, cluster.toml, streams.toml and policies.toml in testdata shows %s", k.Name)
		}
	}
}

// withDefaults adds the settings of a cluster as they are by default.
func withDefaults(o Options) Options {
	o.Sidecar = Sidecar{Addr: "127.0.0.1:0", ContainersAddr: "127.0.0.1:0"}
	o.Redis = Redis{Addrs: []string{"127.0.0.1:6379"}, Prefix: "topsail"}
	o.Consul = Consul{Service: "topsail-sidecar"}
	o.InfluxDB = InfluxDB{URL: "http://127.0.0.1:8086", Bucket: "topsail/autogen", Metrics: time.Second}
	o.Streaming = Streaming{DrainTimeout: 10 * time.Second}
	o.Web.BundlesKeptHours, o.Web.MaxBundleBytes, o.Web.MaxBundlesBytes = 168, 2<<30, 64<<30
	o.Jobs = Jobs{Driver: "raw_exec", Datacenters: []string{"*"}, CPU: 500, MemoryMB: 300, KillTimeout: 30 * time.Second}
	return o
}

func TestCluster(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "cluster.toml"), user, nil)
	equal(t, "gateway", c.Gateway.KeysFile, "/etc/topsail/query.keys")
	equal(t, "redis", c.Redis, Redis{
		Addrs: []string{"10.0.0.5:26379", "10.0.0.6:26379"}, Master: "main", Username: "topsail",
		PasswordFile: "/etc/topsail/redis.password", TLS: true, Prefix: "staging",
	})
	equal(t, "cold start", c.Apps[0].ColdStart.Std(), 30*time.Second)
	v := c.Versions[0]
	equal(t, "scale", v.Scale, &serving.ScaleSpec{
		Max: 4, Metric: "concurrency", Target: 2, Utilisation: 0.8, Idle: serving.Duration(5 * time.Minute), StepUp: 4, StepDown: 1.5,
		CooldownUp: serving.Duration(time.Second), CooldownDown: serving.Duration(time.Minute), DeadBand: 0.2,
	})
	equal(t, "resources", v.Resources, serving.Resources{
		CPU: 4000, MemoryMB: 16000, GPU: serving.GPU{Count: 1, Device: "nvidia/gpu/1g.10gb", MemoryMB: 8000, Runtime: "nvidia"},
	})
	equal(t, "artifacts", v.Container.Artifacts, []serving.Artifact{{
		Source: "https://models.example/llm.tar.gz", Checksum: "sha256:1111111111111111111111111111111111111111111111111111111111111111",
		Destination: "local/weights",
	}})
	equal(t, "limit", c.Apps[0].Limit, &serving.Limit{PerSecond: 100, Burst: 20})
	equal(t, "bundle", c.Versions[1].Container, serving.Container{
		Bundle: "sha256:2222222222222222222222222222222222222222222222222222222222222222", BundleURL: "https://models.example/iris.zip",
	})
	equal(t, "secrets", v.Container.Secrets, map[string]string{"HF_TOKEN": "hf_token"})
	host, guest := c.Versions[2], c.Versions[3]
	equal(t, "host", host.Host, &serving.HostSpec{MemoryMB: 512})
	equal(t, "a host's command", host.Container.Command, []string{"python3", "-m", "topsail", "host"})
	equal(t, "hosted by", guest.HostedBy, "small")
}

// TestListsAsText is how variables and flags give lists.
func TestListsAsText(t *testing.T) {
	c := mustLoad(t, "", append(user, "TOPSAIL_REDIS_ADDRS=a:1, b:2"), map[string]string{"jobs-datacenters": "dc1"})
	equal(t, "addresses", c.Redis.Addrs, []string{"a:1", "b:2"})
	equal(t, "datacenters", c.Jobs.Datacenters, []string{"dc1"})
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, show(got), show(want))
	}
}

func TestDefaultOutputAsText(t *testing.T) {
	for written, want := range map[string]string{`"-1"`: "-1", "-1": "-1", "1.5": "1.5", "2.0": "2.0", "true": "true", `""`: ""} {
		c := mustLoad(t, "[[app]]\nname='a'\ninput_type='ints'\ndefault_output="+written, user, nil)
		if got := c.Apps[0].DefaultOutput; got != want {
			t.Errorf("default_output = %s: got %q, want %q", written, got, want)
		}
	}
}

func TestLastVersionIsCurrent(t *testing.T) {
	model := func(version, more string) string {
		return "[[model]]\nname='m'\ninput_type='ints'\nversion='" + version + "'\n" + more + "\n"
	}
	for _, test := range []struct{ text, want string }{
		{model("1", "") + model("2", ""), "2"},
		{model("1", "current=true") + model("2", ""), "1"},
		{model("1", "") + model("2", "current=true") + model("3", ""), "2"},
		{model("1", "current=false") + model("2", "current=false"), "2"},
	} {
		if got := mustLoad(t, test.text, user, nil).Current["m"]; got != test.want {
			t.Errorf("got %q, want %q, of\n%s", got, test.want, test.text)
		}
	}
}

func TestDataDir(t *testing.T) {
	for _, test := range []struct {
		text    string
		environ []string
		flags   map[string]string
		want    string
	}{
		{"", []string{"HOME=/h"}, nil, "/h/.local/state/topsail"},
		{"", []string{"HOME=/h", "XDG_STATE_HOME=/x"}, nil, "/x/topsail"},
		{"", []string{"HOME=/h", "XDG_STATE_HOME=relative"}, nil, "/h/.local/state/topsail"},
		{"data_dir='d'", []string{"HOME=/h"}, nil, "/etc/topsail/d"},
		{"data_dir='/d'", nil, nil, "/d"},
		{"data_dir='d'", []string{"TOPSAIL_DATA_DIR=e"}, nil, "e"},
		{"data_dir='d'", []string{"TOPSAIL_DATA_DIR=e"}, map[string]string{"data-dir": "f"}, "f"},
	} {
		if got := mustLoad(t, test.text, test.environ, test.flags).DataDir; got != test.want {
			t.Errorf("%q, %q, %q: got %q, want %q", test.text, test.environ, test.flags, got, test.want)
		}
	}
}
