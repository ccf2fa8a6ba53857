package jobs

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"topsail/serving"
)

// safeName names a variable or an item that stands unquoted in a template of Nomad.
var safeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

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
	Secrets   map[string]string
}

type artifact struct {
	serving.Artifact
	Mode string
}

func newJob(s Spec, hash string) (job, error) {
	settings := s.Settings.Hash()
	s.Settings = s.Settings.defaults()
	if s.Settings.Mesh {
		s.Settings.TLS = meshTLS
	}
	sidecar, err := newSidecar(s)
	if err != nil {
		return job{}, err
	}
	return job{
		Spec: s, ID: ID(s.Version.ModelID), Hash: hash, SettingsHash: settings, Generation: Generation,
		Sidecar: sidecar, Container: newContainer(s),
	}, nil
}

// newSidecar is the task of topsail itself.
func newSidecar(s Spec) (task, error) {
	models, err := sidecarModels(s.Version)
	if err != nil {
		return task{}, err
	}
	p := s.Settings.Program
	t := task{
		Driver: p.Driver, Command: p.Source, Args: []string{"sidecar"},
		CPU: p.CPU, MemoryMB: p.MemoryMB, Env: sidecarEnv(s, models),
	}
	switch {
	case p.Driver == "docker": // its entrypoint is the program
		t.Image, t.Command = p.Source, ""
	case p.fetched():
		t.Command = "${NOMAD_TASK_DIR}/topsail"
		t.Artifacts = []artifact{{serving.Artifact{Source: p.Source, Checksum: p.Checksum, Destination: "local/topsail"}, "file"}}
	}
	return t, nil
}

// sidecarEnv tells the sidecar everything, by the names of its settings.
func sidecarEnv(s Spec, models string) map[string]string {
	env := map[string]string{
		"TOPSAIL_SIDECAR_REPLICA":              "${NOMAD_ALLOC_ID}",
		"TOPSAIL_SIDECAR_ADDR":                 "${NOMAD_ADDR_rpc}",
		"TOPSAIL_SIDECAR_CONTAINERS_ADDR":      "127.0.0.1:${NOMAD_PORT_containers}",
		"TOPSAIL_SIDECAR_CONTAINER_TOKEN_FILE": tokenFile,
		"TOPSAIL_SIDECAR_MODELS":               models,
		"TOPSAIL_OPS_ADDR":                     "${NOMAD_ADDR_ops}",
	}
	for name, value := range map[string]string{
		"TOPSAIL_TLS_CERT_FILE":      s.Settings.TLS.CertFile,
		"TOPSAIL_TLS_KEY_FILE":       s.Settings.TLS.KeyFile,
		"TOPSAIL_TLS_CA_FILE":        s.Settings.TLS.CAFile,
		"TOPSAIL_SIDECAR_TOKEN_FILE": s.Settings.TokenFile,
	} {
		if value != "" {
			env[name] = value
		}
	}
	maps.Copy(env, s.Settings.SidecarEnv)
	return env
}

// tokenFile is where the sidecar writes the token that its container shows. Each
// task finds the shared folder where its driver puts it.
const tokenFile = "${NOMAD_ALLOC_DIR}/data/container.token"

// meshTLS is where the sidecar finds what the mesh gives it. Gateways choose among
// replicas, which a proxy of the mesh would do for them, so there is none: the
// sidecar speaks mutual TLS itself, with the mesh's certificates.
var meshTLS = TLS{
	CertFile: "${NOMAD_SECRETS_DIR}/cert.pem",
	KeyFile:  "${NOMAD_SECRETS_DIR}/key.pem",
	CAFile:   "${NOMAD_SECRETS_DIR}/ca.pem",
}

// sidecarModels is what the sidecar needs to know of a version: neither what makes
// its container, least of all the secrets, nor what may change while it runs.
func sidecarModels(v *serving.Version) (string, error) {
	c := v.Container
	known := *v
	known.Replicas, known.Scale, known.Pin, known.Labels, known.Origin = 0, nil, nil, nil, ""
	known.Resources = serving.Resources{}
	known.Container = serving.ContainerSpec{Addr: c.Addr, Protocol: c.Protocol, Connections: c.Connections}
	text, err := json.Marshal([]serving.Version{known})
	if err != nil {
		return "", fmt.Errorf("model version %v: %w", v.ModelID, err)
	}
	return string(text), nil
}

// newContainer is the task of the version's own command, if it has one.
func newContainer(s Spec) *task {
	c, r := s.Version.Container, s.Version.Resources
	if c.Addr != "" {
		return nil
	}
	t := &task{
		Driver: c.Driver, Image: c.Image, Dir: directory(c.Dir), Env: containerEnv(s.Version),
		CPU: r.CPU, MemoryMB: r.MemoryMB, GPU: r.GPU, Secrets: c.Secrets,
	}
	if len(c.Command) > 0 {
		t.Command, t.Args = c.Command[0], c.Command[1:]
	}
	if c.Image != "" {
		t.Driver = "docker"
	}
	set(&t.Driver, s.Settings.Driver)
	set(&t.CPU, s.Settings.CPU)
	set(&t.MemoryMB, s.Settings.MemoryMB)
	if r.GPU.Count > 0 {
		set(&t.GPU.Device, "nvidia/gpu")
		t.Runtime = r.GPU.Runtime
		set(&t.Runtime, "nvidia")
	}
	for _, a := range c.Artifacts {
		set(&a.Destination, "local/")
		t.Artifacts = append(t.Artifacts, artifact{a, "any"})
	}
	return t
}

// containerEnv is what a container is told, as in local mode.
func containerEnv(v *serving.Version) map[string]string {
	env := map[string]string{
		"TOPSAIL_SIDECAR":    "127.0.0.1:${NOMAD_PORT_containers}",
		"TOPSAIL_TOKEN_FILE": tokenFile,
		"TOPSAIL_MODEL":      v.Model,
		"TOPSAIL_VERSION":    v.Version,
		"TOPSAIL_INPUT_TYPE": v.InputType.String(),
		"TOPSAIL_REPLICA":    "${NOMAD_ALLOC_ID}",
		"PYTHONUNBUFFERED":   "1", // so that what a model prints is in the log at once
	}
	if v.InputLength > 0 {
		env["TOPSAIL_INPUT_LENGTH"] = strconv.Itoa(v.InputLength)
	}
	maps.Copy(env, v.Container.Env)
	return env
}

// directory is dir as Nomad's drivers want it, absolute: a relative one is in the
// task's folder, as the destinations of artifacts are.
func directory(dir string) string {
	if dir == "" || strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, "${") {
		return dir
	}
	return "${NOMAD_TASK_DIR}/../" + dir
}

// What follows is for the templates.

func (j job) ShutdownDelay() time.Duration { return ShutdownDelay(j.SLO) }
func (j job) KillTimeout() time.Duration   { return KillTimeout(j.SLO) }

// Canaries are the replicas that a rollout starts before it ends others: all of
// them, so that never fewer serve than were asked for. A cluster seldom has as many
// GPUs to spare; there a replica ends before the one in its place starts.
func (j job) Canaries() int {
	if j.Version.Resources.GPU.Count > 0 {
		return 0
	}
	return j.Count
}

// Protocol is the one that gateways and the sidecar speak.
func (j job) Protocol() string { return "2" }
