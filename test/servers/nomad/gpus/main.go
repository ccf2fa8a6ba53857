// Command gpus is a device plugin of Nomad for tests: it announces GPUs that are not
// there, and tells tasks of theirs, both as HashiCorp's nomad-device-nvidia does.
package main

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/nomad/plugins"
	"github.com/hashicorp/nomad/plugins/base"
	"github.com/hashicorp/nomad/plugins/device"
	"github.com/hashicorp/nomad/plugins/shared/hclspec"
	"github.com/hashicorp/nomad/plugins/shared/structs"
)

func main() { plugins.Serve(func(hclog.Logger) any { return gpus{} }) }

type gpus struct{}

func (gpus) PluginInfo() (*base.PluginInfoResponse, error) {
	return &base.PluginInfoResponse{Type: base.PluginTypeDevice, PluginApiVersions: []string{device.ApiVersion010}, PluginVersion: "0.1.0", Name: "gpus"}, nil
}

func (gpus) ConfigSchema() (*hclspec.Spec, error) { return hclspec.NewObject(nil), nil }

func (gpus) SetConfig(*base.Config) error { return nil }

// Fingerprint announces two GPUs and two slices of MIG, once.
func (gpus) Fingerprint(context.Context) (<-chan *device.FingerprintResponse, error) {
	found := make(chan *device.FingerprintResponse, 1)
	found <- device.NewFingerprint(
		group("NVIDIA A100-SXM4-80GB", 81920, "GPU-a", "GPU-b"),
		group("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 9728, "MIG-c0", "MIG-c1"),
	)
	return found, nil
}

func group(name string, mib int64, ids ...string) *device.DeviceGroup {
	g := &device.DeviceGroup{
		Vendor: "nvidia", Type: device.DeviceTypeGPU, Name: name,
		Attributes: map[string]*structs.Attribute{"memory": {Int: &mib, Unit: structs.UnitMiB}},
	}
	for _, id := range ids {
		g.Devices = append(g.Devices, &device.Device{ID: id, Healthy: true})
	}
	return g
}

// Reserve tells a task its GPUs, and passes no files of devices on.
func (gpus) Reserve(ids []string) (*device.ContainerReservation, error) {
	return &device.ContainerReservation{Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(ids, ",")}}, nil
}

func (gpus) Stats(context.Context, time.Duration) (<-chan *device.StatsResponse, error) {
	return make(chan *device.StatsResponse), nil
}
