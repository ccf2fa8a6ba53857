package jobs

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// giveGPUs has Nomad give a task its GPUs, and the task see no others.
func giveGPUs(t *api.Task, gpu serving.GPU) {
	if gpu.Count == 0 {
		return
	}
	device := newDevice(gpu)
	t.Resources.Devices = []*api.RequestedDevice{device}
	switch {
	case t.Driver == docker:
		t.Config["runtime"] = cmp.Or(gpu.Runtime, "nvidia")
	case isNVIDIA(device.Name): // the driver hides no GPU, so CUDA is told which are this replica's
		t.Templates = append(t.Templates, newVariables("gpu.env", "CUDA_VISIBLE_DEVICES={{ env \"NVIDIA_VISIBLE_DEVICES\" }}\n"))
	}
}

// newDevice is the GPUs of a replica.
func newDevice(gpu serving.GPU) *api.RequestedDevice {
	name, slice := sliced(cmp.Or(gpu.Device, "nvidia/gpu"))
	device := &api.RequestedDevice{Name: name, Count: new(uint64(gpu.Count))}
	if slice != "" {
		device.Constraints = append(device.Constraints, &api.Constraint{LTarget: "${device.model}", Operand: "regexp", RTarget: slice})
	}
	if gpu.MemoryMB != 0 {
		device.Constraints = append(device.Constraints, &api.Constraint{LTarget: "${device.attr.memory}", Operand: ">=", RTarget: fmt.Sprintf("%d MiB", gpu.MemoryMB)})
	}
	return device
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
