package jobs

import (
	"flag"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

var update = flag.Bool("update", false, "write the golden files")

// base is a version and settings that variants change.
func base() Spec {
	return Spec{
		Version: &serving.Version{
			ModelID:   serving.ModelID{Model: "wine", Version: "1.2"},
			InputType: serving.Doubles, InputLength: 13, Replicas: 2, Origin: serving.FromAPI,
			Container: serving.Container{
				Command: []string{"python3", "-m", "topsail", "wine:model"},
				Dir:     "/srv/models", Env: map[string]string{"OMP_NUM_THREADS": "1"},
			},
		},
		Count: 2, SLO: 100 * time.Millisecond,
		Settings: Settings{Program: Program{Source: "/usr/local/bin/topsail"}},
	}
}

const checksum = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// variants are jobs that differ from the base in much or in one field or setting: together they have everything that a job can
// have. The real Nomad takes each of them.
var variants = map[string]func(*Spec){
	"exec": func(s *Spec) { // all that a command can have; a replica of it ends before the next starts
		s.Rolling, s.Version.Generation = true, "k3vq5d7xw2ma"
		s.Settings.Region, s.Settings.Namespace, s.Settings.NodePool = "global", "default", "default"
		s.Settings.Datacenters = []string{"dc1", "dc2"}
		s.Settings.Program = Program{Source: "https://models.example/topsail", Checksum: checksum, Driver: "exec"}
		s.Settings.Driver, s.Settings.VaultRole, s.Settings.TokenFile = "exec", "topsail-models", "/etc/topsail/token"
		s.Settings.TLS = TLS{CertFile: "/etc/topsail/cert.pem", KeyFile: "/etc/topsail/key.pem", CAFile: "/etc/topsail/ca.pem"}
		s.Settings.SidecarEnv = map[string]string{"TOPSAIL_INFLUXDB_URL": "https://influxdb.example:8086"}
		s.Version.Container.Command = []string{"python3", "-m", "topsail", "pipeline"}
		s.Version.Container.Dir = "local/wine"
		s.Version.Container.Artifacts = []serving.Artifact{
			{Source: "https://models.example/wine.tar.gz", Checksum: checksum},
			{Source: "s3::https://s3.example/models/wine.bin", Checksum: checksum, Destination: "local/wine"},
		}
		s.Version.Container.Secrets = map[string]string{"DB_PASSWORD": "password", "API_KEY": "key"}
		s.Version.Resources.GPU = serving.GPU{Count: 1, Device: "nvidia/gpu/1g.10gb"}
		s.Version.Stages = serving.Pipeline{
			{Name: "decode", Code: "wine:Decode", Workers: 2, CPUs: []int{1, 2}},
			{Name: "rank", Code: "wine:Rank", Batch: serving.StageBatch{Strategy: "fixed", MaxSize: 16, Delay: serving.Duration(2 * time.Millisecond)}},
		}
	},
	"docker": func(s *Spec) { // images, of topsail and of a model that knows one port
		s.Settings.Program = Program{Source: "topsail:1.0", Driver: "docker", CPU: 100, MemoryMB: 64}
		s.Version.Container = serving.Container{Image: "models/wine:1.2", Command: []string{"/wine"}, Dir: "/srv", Protocol: "v1", Port: 7000}
		s.Version.Resources = serving.Resources{CPU: 1000, MemoryMB: 2048, GPU: serving.GPU{Count: 2, MemoryMB: 20480}}
	},
	"bundle": func(s *Spec) {
		s.Version.Container = serving.Container{Bundle: checksum, Driver: "docker", Env: map[string]string{"OMP_NUM_THREADS": "1"}}
		s.Settings.BundlesURL, s.Settings.RuntimeImage = "http://topsail.example:1338", "topsail-runtime:1.0"
	},
	"host": func(s *Spec) { // both tasks fetch bundles from where Consul says that management is
		s.Version.InputType, s.Version.InputLength, s.Version.Host = 0, 0, &serving.HostSpec{MemoryMB: 512}
		s.Version.Container = serving.Container{Bundle: checksum, Driver: "docker"}
		s.Settings.RuntimeImage, s.Settings.WorkDir = "topsail-runtime:1.0", "/srv/topsail"
	},
	"mesh": func(s *Spec) { // with a container that listens where it is told
		s.Rolling, s.Settings.Mesh = true, true
		s.Version.Container = serving.Container{
			Command: []string{"python3", "container.py", "--listen=127.0.0.1:${PORT}"}, Env: map[string]string{"CLIPPER_PORT": "${PORT}"}, Protocol: "v1", Connections: 2,
		}
	},
	"nomad": func(s *Spec) { // Nomad lists the replicas, and their containers run by themselves
		s.Settings.Provider = "nomad"
		s.Version.Container = serving.Container{Addr: "127.0.0.1:7000", Protocol: "v1", Connections: 4}
	},
	"a rollout":                 func(s *Spec) { s.Rolling = true },
	"any GPU, on a node itself": func(s *Spec) { s.Version.Resources.GPU = serving.GPU{Count: 1} },
	"CPUs of its own":           func(s *Spec) { s.Version.Resources.Cores = 2 },
	"any GPU, in an image": func(s *Spec) {
		s.Version.Container = serving.Container{Image: "models/wine:1.2"}
		s.Version.Resources.GPU = serving.GPU{Count: 1}
	},
	"an image": func(s *Spec) {
		s.Version.Container = serving.Container{Image: "models/wine:1.2", Protocol: "v1", Port: 7000}
	},
	"a bundle of management's URL": func(s *Spec) {
		bundle(s)
		s.Settings.BundlesURL, s.Settings.WorkDir = "http://topsail.example:1338/", "/var/cache/topsail"
	},
	"a bundle of another URL, with a program that is fetched": func(s *Spec) {
		bundle(s)
		s.Version.Container.BundleURL, s.Settings.BundlesURL = "https://models.example/wine.zip", "http://topsail.example:1338"
		s.Settings.Program = Program{Source: "https://models.example/topsail", Checksum: checksum}
	},
	"a bundle of where Consul says": func(s *Spec) {
		bundle(s)
		s.Settings.TLS = TLS{CertFile: "/etc/topsail/cert.pem", KeyFile: "/etc/topsail/key.pem", CAFile: "/etc/topsail/ca.pem", ServerName: "topsail.example"}
	},
	"a bundle of where Consul says, in the mesh": func(s *Spec) { bundle(s); s.Settings.Mesh = true },
	"a bundle in an image, with a GPU": func(s *Spec) {
		bundle(s)
		s.Version.Container.Driver, s.Version.Resources.GPU = "docker", serving.GPU{Count: 1}
		s.Settings.BundlesURL, s.Settings.RuntimeImage, s.Settings.WorkDir = "http://topsail.example:1338", "topsail-runtime:1.0", "/srv/topsail"
	},
	"a host whose bundles are at a URL":           func(s *Spec) { host(s); s.Settings.BundlesURL = "http://topsail.example:1338" },
	"a host with a command, of where Consul says": host,
	"a container that runs by itself":             func(s *Spec) { s.Version.Container = serving.Container{Addr: "127.0.0.1:7000", Protocol: "v1"} },
	"certificates":                                func(s *Spec) { s.Settings.TLS = TLS{CertFile: "/cert.pem", KeyFile: "/key.pem", CAFile: "/ca.pem"} },
}

func bundle(s *Spec) { s.Version.Container = serving.Container{Bundle: checksum} }

func host(s *Spec) {
	s.Version.InputType, s.Version.InputLength, s.Version.Host = 0, 0, &serving.HostSpec{MemoryMB: 512}
	s.Version.Container = serving.Container{Command: []string{"python3", "-m", "topsail", "host"}}
}

// made is the job of the base with a change.
func made(t testing.TB, change func(*Spec)) *api.Job {
	t.Helper()
	s := base()
	change(&s)
	job, err := Make(s)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func specOf(t *testing.T, change func(*Spec)) string {
	t.Helper()
	return made(t, change).Meta[MetaSpec]
}

// TestSpecHash: what may change while a replica runs must not make it another one.
func TestSpecHash(t *testing.T) {
	spec := specOf(t, func(*Spec) {})
	for name, change := range map[string]func(*Spec){
		"count":    func(s *Spec) { s.Count = 7 },
		"slo":      func(s *Spec) { s.SLO = time.Second },
		"rolling":  func(s *Spec) { s.Rolling = true },
		"replicas": func(s *Spec) { s.Version.Replicas = 9 },
		"scale":    func(s *Spec) { s.Version.Scale = &serving.ScaleSpec{Max: 3} },
		"pin":      func(s *Spec) { s.Version.Pin = &serving.Pin{Count: 1} },
		"labels":   func(s *Spec) { s.Version.Labels = []string{"x"} },
		"words":    func(s *Spec) { s.Version.Description = "x" },
		"origin":   func(s *Spec) { s.Version.Origin = serving.FromFile },
		"deployed": func(s *Spec) { s.Version.Deployed = &serving.Deployed{By: "ann", Commit: "c1"} },
		"defaults": func(s *Spec) { s.Settings = s.Settings.defaults() },
	} {
		if got := specOf(t, change); got != spec {
			t.Errorf("another %s is another replica", name)
		}
	}
	for name, change := range map[string]func(*Spec){
		"command":  func(s *Spec) { s.Version.Container.Command = []string{"true"} },
		"env":      func(s *Spec) { s.Version.Container.Env = nil },
		"secret":   func(s *Spec) { s.Version.Container.Secrets = map[string]string{"A": "a"} },
		"batch":    func(s *Spec) { s.Version.Batch.MaxSize = 3 },
		"memory":   func(s *Spec) { s.Version.Resources.MemoryMB = 3 },
		"stages":   func(s *Spec) { s.Version.Stages = serving.Pipeline{{Name: "a", Workers: 2}} },
		"settings": func(s *Spec) { s.Settings.Program.Source = "/opt/topsail" },
	} {
		if got := specOf(t, change); got == spec {
			t.Errorf("another %s is the same replica", name)
		}
	}
}

// TestGeneration: this changes with the hash of every version, and a cluster would replace the replicas of all of them at
// once. Where the generation grows with it, it replaces those of one version after another.
func TestGeneration(t *testing.T) {
	if got := fmt.Sprint(Generation, " ", specOf(t, func(*Spec) {})); got != "2 c3b7129f" {
		t.Errorf("got %s: let Generation grow, and put it here", got)
	}
}

// TestSidecarKnowsNoSecrets: the command's environment is none of its business.
func TestSidecarKnowsNoSecrets(t *testing.T) {
	job := made(t, func(s *Spec) {
		s.Version.Container.Env = map[string]string{"PASSWORD": "hunter2"}
		s.Version.Container.Secrets = map[string]string{"API_KEY": "item"}
	})
	sidecar, container := job.TaskGroups[0].Tasks[0], job.TaskGroups[0].Tasks[1]
	if text := fmt.Sprint(given(reflect.ValueOf(sidecar))); strings.Contains(text, "hunter2") || strings.Contains(text, "API_KEY") {
		t.Errorf("the sidecar has what is the container's: %s", text)
	}
	if container.Env["PASSWORD"] != "hunter2" {
		t.Errorf("the container has the environment %v", container.Env)
	}
}

// TestWhoKnowsManagement: the tasks that fetch bundles from where Consul says, and no others.
func TestWhoKnowsManagement(t *testing.T) {
	for name, v := range map[string]struct {
		change             func(*Spec)
		sidecar, container bool
	}{
		"a bundle":           {bundle, false, true},
		"a host":             {host, true, false},
		"a host in a bundle": {func(s *Spec) { host(s); bundle(s) }, true, true},
		"a command":          {func(*Spec) {}, false, false},
	} {
		tasks := made(t, v.change).TaskGroups[0].Tasks
		if (tasks[0].Consul != nil) != v.sidecar || (tasks[1].Consul != nil) != v.container {
			t.Errorf("%s: another task is told", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"nothing to run":       func(s *Spec) { s.Version.Container = serving.Container{} },
		"variable \"A=B\"":     func(s *Spec) { s.Version.Container.Env = map[string]string{"A=B": ""} },
		"variable \"\"":        func(s *Spec) { s.Version.Container.Env = map[string]string{"": "x"} },
		"secret \"A B\"":       func(s *Spec) { s.Version.Container.Secrets = map[string]string{"A B": "x"} },
		"from item \"x}}\"":    func(s *Spec) { s.Version.Container.Secrets = map[string]string{"A": "x}}"} },
		"not UTF-8":            func(s *Spec) { s.Version.Container.Command = []string{"a\xffb"} },
		"give the version an":  func(s *Spec) { s.Settings.Driver = "docker" },
		"topsail program":      func(s *Spec) { s.Settings.Program = Program{} },
		"needs a checksum":     func(s *Spec) { s.Settings.Program.Source = "https://x/topsail" },
		"driver \"qemu\"":      func(s *Spec) { s.Settings.Program.Driver = "qemu" },
		"provider \"etcd\"":    func(s *Spec) { s.Settings.Provider = "etcd" },
		"service \"A b\"":      func(s *Spec) { s.Settings.Service = "A b" },
		"mesh is Consul's":     func(s *Spec) { s.Settings.Mesh, s.Settings.Provider = true, "nomad" },
		"all three":            func(s *Spec) { s.Settings.TLS.CAFile = "/ca" },
		"variable \"X\\x00Y\"": func(s *Spec) { s.Settings.SidecarEnv = map[string]string{"X\x00Y": ""} },
	} {
		s := base()
		change(&s)
		if job, err := Make(s); err == nil || !strings.Contains(err.Error(), want) || job != nil {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestTiming(t *testing.T) {
	for slo, want := range map[time.Duration]time.Duration{
		0:                      2 * time.Second,
		100 * time.Millisecond: 2100 * time.Millisecond,
		20 * time.Second:       22 * time.Second,
		serving.MaxSLO:         30 * time.Second,
	} {
		if got := ShutdownDelay(slo); got != want {
			t.Errorf("SLO %v: %v, want %v", slo, got, want)
		}
	}
	for _, task := range made(t, func(s *Spec) { s.Settings.KillTimeout = 10 * time.Minute }).TaskGroups[0].Tasks {
		if *task.KillTimeout != 10*time.Minute || task.KillSignal != "SIGTERM" {
			t.Errorf("%s has %v to end, from %s on", task.Name, *task.KillTimeout, task.KillSignal)
		}
	}
}

func TestID(t *testing.T) {
	if got := ID(serving.ModelID{Model: "wine", Version: "1.2"}); got != "topsail-wine-"+hash("wine:1.2") || len(hash("")) != 8 {
		t.Error(got)
	}
	if ID(serving.ModelID{Model: "a", Version: "1"}) == ID(serving.ModelID{Model: "a", Version: "2"}) {
		t.Error("two versions have one job")
	}
}

// A version that is another definition by now wants other replicas, even where all else is
// the same.
func TestHashHasTheGeneration(t *testing.T) {
	hash := func(generation string) string {
		s := base()
		s.Version.Generation = generation
		text, err := Hash(s)
		if err != nil {
			t.Fatal(err)
		}
		if models := newJob(s, text).TaskGroups[0].Tasks[0].Env; GenerationIn(models) != generation {
			t.Errorf("generation %q: the sidecar serves %s", generation, models[modelsVariable])
		}
		return text
	}
	if hash("a") == hash("b") || hash("a") == hash("") {
		t.Errorf("got %s, %s and %s", hash("a"), hash("b"), hash(""))
	}
}
