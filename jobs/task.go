package jobs

import (
	"github.com/hashicorp/nomad/api"
)

// docker is the driver of images.
const docker = "docker"

// command is what a task runs; empty fields leave it to the image.
type command struct {
	image, program string
	args           []string
	dir            string
}

// newTask is a task that runs a command, with what both tasks have in common.
func newTask(name, driver string, c command, s Settings) *api.Task {
	t := &api.Task{Name: name, Driver: driver, Config: map[string]any{}, KillTimeout: &s.KillTimeout, KillSignal: "SIGTERM"}
	for key, text := range map[string]string{"image": c.image, "command": c.program, "work_dir": c.dir} {
		if text != "" {
			t.Config[key] = text
		}
	}
	if len(c.args) > 0 {
		t.Config["args"] = c.args
	}
	if driver == docker {
		t.Config["network_mode"] = "host"
	}
	return t
}

// newArtifact is a file that a task's node fetches before the task starts.
func newArtifact(source, checksum, destination, mode string) *api.TaskArtifact {
	return &api.TaskArtifact{
		GetterSource: &source, GetterOptions: map[string]string{"checksum": checksum}, GetterMode: &mode, RelativeDest: &destination,
	}
}

// newTemplate is a file of a task. A change of what is in it is there for the next start: to restart all replicas at once would
// be worse.
func newTemplate(destination, text string) *api.Template {
	return &api.Template{DestPath: &destination, EmbeddedTmpl: &text, ChangeMode: new("noop")}
}

// newVariables is a template that gives a task variables, a line for each.
func newVariables(name, text string) *api.Template {
	t := newTemplate("${NOMAD_SECRETS_DIR}/"+name, text)
	t.Envvars = new(true)
	return t
}

// knowManagement has a task learn from Consul where management is, in managementFile. Where Consul controls access, a template
// reads by the identity of its task alone.
func knowManagement(t *api.Task) {
	t.Consul = &api.Consul{}
	t.Templates = append(t.Templates, newTemplate("local/management",
		`{{ range service "topsail-web" }}{{ with .ServiceMeta.scheme }}{{ . }}{{ else }}http{{ end }} {{ .Address }} {{ .Port }}`+"\n{{ end }}"))
}
