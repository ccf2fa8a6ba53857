package nomadfleet

import (
	"testing"

	"github.com/hashicorp/nomad/api"
)

func TestUsageOf(t *testing.T) {
	used, other := int64(300), int64(7)
	full := &api.ResourceUsage{
		CpuStats:    &api.CpuStats{Percent: 150},
		MemoryStats: &api.MemoryStats{RSS: 1 << 20, Usage: 9 << 20},
		DeviceStats: []*api.DeviceGroupStats{
			{Vendor: "nvidia", Type: "gpu", InstanceStats: map[string]*api.DeviceStats{
				"a": {Summary: &api.StatValue{IntNumeratorVal: &used, Unit: "MiB"}}, "b": {Summary: &api.StatValue{IntNumeratorVal: &used, Unit: "MiB"}}, "c": {},
			}},
			{Vendor: "x", Type: "fpga", InstanceStats: map[string]*api.DeviceStats{"a": {Summary: &api.StatValue{IntNumeratorVal: &other, Unit: "MiB"}}}},
		},
	}
	for name, c := range map[string]struct {
		r    *api.ResourceUsage
		want Usage
	}{
		"nothing":        {nil, Usage{}},
		"empty":          {&api.ResourceUsage{}, Usage{}},
		"all":            {full, Usage{Cores: 1.5, Memory: 1 << 20, GPUMemory: 600 << 20}},
		"without an RSS": {&api.ResourceUsage{MemoryStats: &api.MemoryStats{Usage: 9 << 20}}, Usage{Memory: 9 << 20}},
	} {
		if got := usageOf(c.r); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
