package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// newContainer is the task that runs the version's command or bundle; nil where its container runs by itself.
func newContainer(s Spec) *api.Task {
	v, c := s.Version, s.Version.Container
	if c.Addr != "" {
		return nil
	}
	c.Env = containerEnv(v)
	if c.Listens() {
		c = c.WithPort(portOf(c))
	}
	driver := driverOf(c, s.Settings)
	t := newTask(Container, driver, containerCommand(c, driver, s.Settings), s.Settings)
	t.Env = c.Env
	t.Resources = &api.Resources{MemoryMB: new(containerMemory(v, driver, s.Settings))}
	if n := v.Resources.Cores; n > 0 {
		t.Resources.Cores = &n
	} else {
		t.Resources.CPU = new(cmp.Or(v.Resources.CPU, s.Settings.CPU))
	}
	if driver == docker && c.Port != 0 {
		mapPort(t)
	}
	giveGPUs(t, v.Resources.GPU)
	if c.Bundle != "" {
		prepareBundle(t, c, s.Settings)
	}
	for _, a := range c.Artifacts {
		t.Artifacts = append(t.Artifacts, newArtifact(a.Source, a.Checksum, cmp.Or(a.Destination, "local/"), "any"))
	}
	if role := s.Settings.VaultRole; role != "" {
		t.Vault = &api.Vault{Role: role}
	}
	if len(c.Secrets) > 0 {
		t.Templates = append(t.Templates, newSecrets(ID(v.ModelID), c.Secrets))
	}
	return t
}

// driverOf is the driver of a version's container.
func driverOf(c serving.Container, s Settings) string {
	if c.Image != "" {
		return docker
	}
	return cmp.Or(c.Driver, s.Driver)
}

// containerCommand is what a version's container runs.
func containerCommand(c serving.Container, driver string, s Settings) command {
	run := command{image: c.Image, dir: directory(c.Dir)}
	switch {
	case c.Bundle != "":
		run.args = bundleArgs(c, driver, s)
		if driver == docker { // the stock image's entrypoint is the program
			run.image = s.RuntimeImage
		} else {
			run.program = s.Program.path()
		}
	case len(c.Command) > 0:
		run.program, run.args = c.Command[0], c.Command[1:]
	}
	return run
}

// containerMemory is the memory of a version's container, in MiB. A version that a host is loading may be larger than
// it was expected.
func containerMemory(v *serving.Version, driver string, s Settings) int {
	loaded := 0
	if v.Host != nil {
		loaded = v.Host.MemoryMB + v.Host.MemoryMB/4
	}
	return cmp.Or(v.Resources.MemoryMB, loaded, max(s.MemoryMB, leastMemory(v.Resources.GPU, driver)))
}

// leastMemory is what a container gets at the least, in MiB, unless its version says
// otherwise: CUDA's libraries alone take gigabytes, and an image brings what is large.
func leastMemory(gpu serving.GPU, driver string) int {
	switch {
	case gpu.Count > 0:
		return 4096
	case driver == docker:
		return 1024
	}
	return 0
}

// safeName names a variable or an item that stands unquoted in a template of Nomad.
var safeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// newSecrets gives a task of a job variables from items of the Nomad variable that the job may read.
func newSecrets(job string, secrets map[string]string) *api.Template {
	var text strings.Builder
	fmt.Fprintf(&text, "{{ with nomadVar \"nomad/jobs/%s\" }}\n", job)
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		fmt.Fprintf(&text, "%s={{ .%s.Value | toJSON }}\n", name, secrets[name])
	}
	text.WriteString("{{ end }}\n")
	t := newVariables("topsail.env", text.String())
	t.ErrMissingKey = new(true)
	return t
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
