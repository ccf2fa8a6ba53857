package serving

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Resources are what one replica's container asks of a cluster's node, and of local mode
// GPUs only.
type Resources struct {
	CPU      int `json:"cpu,omitempty" help:"on a cluster: CPU of a replica, in MHz; by default jobs.cpu" flag:"cpu"`
	Cores    int `json:"cores,omitempty" help:"on a cluster: CPUs that a replica has for itself and runs on, in place of cpu" flag:"cores"`
	MemoryMB int `json:"memory_mb,omitempty" help:"on a cluster: memory of a replica, in MiB; by default jobs.memory_mb" flag:"memory"`
	GPU      GPU `json:"gpu,omitzero"`
}

// GPU asks for accelerators; the zero value for none.
type GPU struct {
	Count    int    `json:"count,omitempty" help:"GPUs of each replica" flag:"gpus"`
	Device   string `json:"device,omitempty" help:"vendor/type, or vendor/type/name with the name of a model or MIG profile; by default nvidia/gpu, the only type of local mode" flag:"gpu-device"`
	MemoryMB int    `json:"memory_mb,omitempty" help:"least memory of each GPU, in MiB" flag:"gpu-memory"`
	Runtime  string `json:"runtime,omitempty" help:"on a cluster: runtime of the docker driver; by default nvidia" flag:"gpu-runtime"`
}

var deviceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._+-]*(/[A-Za-z0-9][A-Za-z0-9 ._+-]*){0,2}$`)

func (r Resources) check() error {
	var errs []error
	if r.Cores < 0 || r.Cores > 0 && r.CPU > 0 {
		errs = append(errs, errors.New("resources: give cores, from 1 on, or cpu"))
	}
	if r.CPU < 0 || r.MemoryMB < 0 || r.GPU.MemoryMB < 0 {
		errs = append(errs, errors.New("resources: cpu and memory_mb must not be negative"))
	}
	if r.GPU.Count < 0 || r.GPU.Count > 64 {
		errs = append(errs, errors.New("resources.gpu.count must be between 0 and 64"))
	}
	if r.GPU.Count == 0 && r.GPU != (GPU{}) {
		errs = append(errs, errors.New("resources.gpu needs a count"))
	}
	if d := r.GPU.Device; d != "" && !deviceName.MatchString(d) {
		errs = append(errs, fmt.Errorf("resources.gpu.device %q is not a device: write it as vendor/type/name, such as nvidia/gpu/1g.10gb", d))
	}
	return errors.Join(errs...)
}

// Artifact is a file or archive that a node fetches before the command starts.
type Artifact struct {
	Source      string `json:"source" required:"yes" help:"on a cluster: URL of a file or archive that the node fetches"`
	Checksum    string `json:"checksum" required:"yes" help:"on a cluster: checksum of the artifact, sha256:…"`
	Destination string `json:"destination,omitempty" help:"on a cluster: folder within the task's folder; by default local/"`
}

var checksum = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)

// checkCluster checks what only clusters read.
func (c *Container) checkCluster() error {
	var errs []error
	switch c.Driver {
	case "", "raw_exec", "exec":
		if c.Image != "" && c.Driver != "" {
			errs = append(errs, fmt.Errorf("image is for driver = \"docker\", and this one has %q", c.Driver))
		}
	case "docker":
		if c.Image == "" && c.Bundle == "" {
			errs = append(errs, errors.New("driver = \"docker\" needs an image or a bundle"))
		}
	default:
		errs = append(errs, fmt.Errorf("driver %q is unknown: use \"raw_exec\", \"exec\" or \"docker\"", c.Driver))
	}
	for _, a := range c.Artifacts {
		if a.Source == "" || !checksum.MatchString(a.Checksum) {
			errs = append(errs, errors.New("an artifact needs a source and a checksum such as sha256:…, so that every node gets the same bytes"))
		}
		if d := a.Destination; strings.HasPrefix(d, "/") || strings.Contains(d, "..") {
			errs = append(errs, fmt.Errorf("artifact destination %q must stay in the task's folder", d))
		}
	}
	return errors.Join(errs...)
}
