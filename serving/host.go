package serving

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// HostSpec makes a version a host: its container holds versions of other models, loads
// them when they are asked, and unloads what was asked longest ago to make room. A host
// answers no queries itself.
type HostSpec struct {
	MemoryMB int `json:"memory_mb" required:"yes" help:"makes the version a host, which loads versions of other models: memory of its container with all of them, in MiB" flag:"host-memory"`
}

// Bytes is the memory that the container may take.
func (h *HostSpec) Bytes() int64 { return int64(h.MemoryMB) << 20 }

// HostCommand runs a host that names no command, in Python.
func HostCommand() []string { return []string{"python3", "-m", "topsail", "host"} }

// MinHostMemoryMB is room for a Python with its packages and not much else.
const MinHostMemoryMB = 32

func (h *HostSpec) check() error {
	if h != nil && (h.MemoryMB < MinHostMemoryMB || h.MemoryMB > 1<<20) {
		return fmt.Errorf("host.memory_mb must be between %d and %d", MinHostMemoryMB, 1<<20)
	}
	return nil
}

// hostProblems are what is wrong with a host, or with a version that has one.
func (v *Version) hostProblems() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	c := v.Container
	switch {
	case v.Host != nil && v.HostedBy != "":
		wrong("has both host and hosted_by: a host cannot be hosted by another")
	case v.Host != nil:
		if v.InputType != 0 || v.InputLength != 0 {
			wrong("is a host, and answers no queries itself: leave input_type and input_length out")
		}
		if len(v.Stages) > 0 || v.Batch.MaxSize != 0 || v.Batch.Delay != 0 {
			wrong("is a host: batch and stages are for the versions that it hosts")
		}
		if c.Addr != "" || c.Protocol == "v1" {
			wrong("is a host, which takes version 2 of the protocol: give it a command or a bundle")
		}
		errs = append(errs, v.Host.check())
	case v.HostedBy != "":
		if err := CheckModelName(v.HostedBy); err != nil {
			wrong("hosted_by: %w", err)
		}
		if c.Bundle == "" {
			wrong("hosted_by needs a bundle, which the host's container loads")
		}
		if len(c.Env)+len(c.Watch)+len(c.Artifacts)+len(c.Secrets) > 0 || c.Driver != "" || v.Resources != (Resources{}) {
			wrong("is loaded by its host's container: set env, watch, driver, artifact, secrets and resources on the host")
		}
		if v.Replicas > 1 || v.Scale != nil || v.Pin != nil {
			wrong("is loaded by the replicas of its host on demand: set replicas, scale and pin on the host")
		}
		if len(v.Stages) > 0 {
			wrong("has stages, which a host cannot load: give it replicas of its own")
		}
	}
	return errs
}

// Hosts are the versions whose replicas hold v, the one that serves first; none if
// replicas of its own run it, or its host is not there.
func (c *Catalog) Hosts(v *Version) (ids []ModelID) {
	m := c.Models[v.HostedBy]
	if v.HostedBy == "" || m == nil {
		return nil
	}
	for _, name := range []string{m.Serving, m.Current} {
		id := ModelID{Model: m.Name, Version: name}
		if host := m.Versions[name]; host != nil && host.Host != nil && (len(ids) == 0 || ids[0] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// checkHosting says which hosts of a model's versions are not there, or nil.
func (c *Catalog) checkHosting(m *Model) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		v := m.Versions[name]
		switch host := c.Models[v.HostedBy]; {
		case v.HostedBy == "":
		case host == nil:
			errs = append(errs, fmt.Errorf("model %q version %q is hosted by model %q, which does not exist", m.Name, name, v.HostedBy))
		case host.Versions[host.Current] == nil || host.Versions[host.Current].Host == nil:
			errs = append(errs, fmt.Errorf("model %q version %q is hosted by model %q, whose current version is not a host: give that one host.memory_mb",
				m.Name, name, v.HostedBy))
		}
	}
	return errors.Join(errs...)
}
