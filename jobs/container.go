package jobs

import (
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// safeName names a variable or an item that stands unquoted in a template of Nomad.
var safeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// newContainer is the task of the version's own command, if it has one.
func newContainer(s Spec) *task {
	c, r := s.Version.Container, s.Version.Resources
	if c.Addr != "" {
		return nil
	}
	env := containerEnv(s.Version)
	if c.Listens() {
		c.Env = env
		c = c.WithPort(portOf(c))
		env = c.Env
	}
	t := &task{
		Driver: c.Driver, Image: c.Image, Dir: directory(c.Dir), Env: env,
		CPU: r.CPU, MemoryMB: r.MemoryMB, GPU: r.GPU, Secrets: c.Secrets,
	}
	if c.Port != 0 {
		t.Port = portLabel
	}
	if len(c.Command) > 0 {
		t.Command, t.Args = c.Command[0], c.Command[1:]
	}
	if c.Image != "" {
		t.Driver = "docker"
	}
	set(&t.Driver, s.Settings.Driver)
	set(&t.CPU, s.Settings.CPU)
	if h := s.Version.Host; h != nil {
		set(&t.MemoryMB, h.MemoryMB+h.MemoryMB/4) // a version that is being loaded may be larger than it was expected
	}
	set(&t.MemoryMB, max(s.Settings.MemoryMB, leastMemory(t)))
	if r.GPU.Count > 0 {
		set(&t.GPU.Device, "nvidia/gpu")
		t.GPU.Device, t.Slice = sliced(t.GPU.Device)
		t.Runtime = r.GPU.Runtime
		set(&t.Runtime, "nvidia")
		t.OnlyGiven = t.Driver != "docker" && isNVIDIA(t.GPU.Device)
	}
	if c.Bundle != "" {
		t.runBundle(s)
	}
	for _, a := range c.Artifacts {
		set(&a.Destination, "local/")
		t.Artifacts = append(t.Artifacts, artifact{Artifact: a, Mode: "any"})
	}
	return t
}

// leastMemory is what a container gets at the least, in MiB, unless its version says
// otherwise: CUDA's libraries alone take gigabytes, and an image brings what is large.
func leastMemory(t *task) int {
	switch {
	case t.GPU.Count > 0:
		return 4096
	case t.Driver == "docker":
		return 1024
	}
	return 0
}

// isNVIDIA says whether a device is one that Nomad's plugin for NVIDIA gives: a vendor
// may be left out.
func isNVIDIA(device string) bool {
	return device == "gpu" || strings.HasPrefix(device, "nvidia/")
}

// profile is that of a slice of MIG, as a device is named by it.
var profile = regexp.MustCompile(`^((?:nvidia/)?gpu)/((?:\d+c\.)?\d+g\.\d+gb[+.a-z]*)$`)

// sliced is a device, and what the model of its slices ends with: Nomad's plugin names
// those by the product as well, as "NVIDIA A100-SXM4-80GB MIG 1g.10gb".
func sliced(device string) (whole, slice string) {
	found := profile.FindStringSubmatch(device)
	if found == nil {
		return device, ""
	}
	return found[1], " MIG " + regexp.QuoteMeta(found[2]) + "$"
}

// containerEnv is what a container is told, as in local mode.
func containerEnv(v *serving.Version) map[string]string {
	env := map[string]string{
		"TOPSAIL_SIDECAR":    "127.0.0.1:${NOMAD_PORT_containers}",
		"TOPSAIL_TOKEN_FILE": tokenFile,
		"TOPSAIL_MODEL":      v.Model,
		"TOPSAIL_VERSION":    v.Version,
		"TOPSAIL_REPLICA":    "${NOMAD_ALLOC_ID}",
		"PYTHONUNBUFFERED":   "1", // so that what a model prints is in the log at once
	}
	if v.Host != nil {
		env["TOPSAIL_MODELS_DIR"] = modelsDir
	} else {
		env["TOPSAIL_INPUT_TYPE"] = v.InputType.String()
	}
	if v.InputLength > 0 {
		env["TOPSAIL_INPUT_LENGTH"] = strconv.Itoa(v.InputLength)
	}
	if v.Signature != nil {
		env["TOPSAIL_SIGNATURE"] = v.Signature.JSON()
	}
	if v.Session {
		env["TOPSAIL_SESSION"] = "1"
	}
	if len(v.Stages) > 0 {
		env["TOPSAIL_STAGES"] = v.Stages.JSON()
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
