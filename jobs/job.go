package jobs

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// job is what the templates show.
type job struct {
	Spec
	ID           string
	Hash         string // of everything that makes a replica
	SettingsHash string // of the settings
	Generation   int
	Sidecar      task
	Container    *task // nil when it listens by itself
}

// task is one of the two tasks.
type task struct {
	Driver    string
	Image     string
	Command   string
	Args      []string
	Dir       string
	Runtime   string
	Env       map[string]string
	Artifacts []artifact
	CPU       int
	MemoryMB  int
	GPU       serving.GPU
	Slice     string // of which the model of its GPUs has to be, as a regular expression; empty: any
	Secrets   map[string]string
	Port      string // the one port of a network of its own that is mapped; empty: it is in the node's network

	OnlyGiven  bool   // it sees all GPUs of its node, and is to use those that Nomad gives it
	KeptIn     string // folder in a container of docker that outlives it, from KeptFrom; none
	KeptFrom   string // a folder of the node, or the name of a volume of docker
	Management bool   // it learns from Consul where management is
}

type artifact struct {
	serving.Artifact
	Mode  string
	Whole bool // it is not unpacked
}

func newJob(s Spec, hash string) job {
	settings := s.Settings.Hash()
	s.Settings = s.Settings.defaults()
	if s.Settings.Mesh {
		s.Settings.TLS = meshTLS
	}
	return job{
		Spec: s, ID: ID(s.Version.ModelID), Hash: hash, SettingsHash: settings, Generation: Generation,
		Sidecar: newSidecar(s), Container: newContainer(s),
	}
}

// What follows is for the templates.

// Definition is the generation of the version. It is no part of what is hashed: replicas know it from what they run.
func (j job) Definition() string {
	if j.Hash == "" {
		return ""
	}
	return j.Version.Generation
}

func (j job) ShutdownDelay() time.Duration { return ShutdownDelay(j.SLO) }

// Canaries are the replicas that a rollout starts before it ends others: all of
// them, so that never fewer serve than were asked for. A cluster seldom has as many
// GPUs to spare; there a replica ends before the one in its place starts.
func (j job) Canaries() int {
	if j.Version.Resources.GPU.Count > 0 {
		return 0
	}
	return j.Count
}

// Listens says whether its container listens, and the sidecar dials it.
func (j job) Listens() bool { return j.Version.Container.Listens() }

// DiskMB is what the replicas of a host need for bundles, beside their logs; 0 is
// Nomad's default.
func (j job) DiskMB() int {
	if j.Version.Host == nil {
		return 0
	}
	return 300 + diskFactor*j.Version.Host.MemoryMB
}

// diskFactor is how many times the memory of a host its bundles may take on disk, and
// one that is just being unpacked with them.
const diskFactor = 5

// Protocol is the one that gateways and the sidecar speak.
func (j job) Protocol() string { return "2" }
