package jobs

import (
	"strings"

	"github.com/hashicorp/nomad/api"
)

// Program is the topsail program as the nodes have it or fetch it. One that is
// replaced under the same name goes unnoticed: put its version into the name.
type Program struct {
	Source   string // a path, a URL of Nomad's fetcher, or an image for the driver "docker"
	Checksum string // of what a URL gives: "sha256:…"
	Driver   string // of sidecars; "raw_exec"
	CPU      int    // MHz of a sidecar; 200
	MemoryMB int    // of a sidecar; 128
}

// fetched says whether the nodes fetch the program before they start it.
func (p Program) fetched() bool {
	return p.Driver != docker && strings.Contains(p.Source, "://")
}

// path is the program where a task runs it.
func (p Program) path() string {
	if p.fetched() {
		return "${NOMAD_TASK_DIR}/topsail"
	}
	return p.Source
}

// artifacts are the program as nodes fetch it, if they do.
func (p Program) artifacts() []*api.TaskArtifact {
	if !p.fetched() {
		return nil
	}
	return []*api.TaskArtifact{newArtifact(p.Source, p.Checksum, "local/topsail", "file")}
}
