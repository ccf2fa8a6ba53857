package nomadfleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// needs is what a replica needs of a node, for people.
type needs struct {
	cpu, memoryMB int
	drivers       []string
	device        string // "nvidia/gpu device"; empty: none
}

func needsOf(group *api.TaskGroup) needs {
	var n needs
	for _, task := range group.Tasks {
		n.drivers = append(n.drivers, task.Driver)
		if r := task.Resources; r != nil {
			n.cpu, n.memoryMB = n.cpu+*r.CPU, n.memoryMB+*r.MemoryMB
			for _, d := range r.Devices {
				n.device = deviceWords(d)
			}
		}
	}
	slices.Sort(n.drivers)
	n.drivers = slices.Compact(n.drivers)
	return n
}

func deviceWords(d *api.RequestedDevice) string {
	text := d.Name + " device"
	if d.Count != nil && *d.Count > 1 {
		text = fmt.Sprintf("%d %s devices", *d.Count, d.Name)
	}
	for _, c := range d.Constraints {
		if c.LTarget == "${device.attr.memory}" {
			text += " with " + c.RTarget
		}
	}
	return text
}

// placement says why no node takes a replica.
func placement(m *api.AllocationMetric, n needs) string {
	if m.NodesEvaluated == 0 {
		return "no node is ready in the job's datacenters and node pool"
	}
	reasons := map[string]bool{}
	for constraint := range m.ConstraintFiltered {
		reasons[n.constraint(constraint)] = true
	}
	for dimension := range m.DimensionExhausted {
		reasons[n.exhausted(dimension)] = true
	}
	for _, quota := range m.QuotaExhausted {
		reasons["the quota is used up: "+quota] = true
	}
	if len(reasons) == 0 {
		return fmt.Sprintf("none of %d nodes takes a replica", m.NodesEvaluated)
	}
	return strings.Join(slices.Sorted(maps.Keys(reasons)), "; ")
}

// constraint says what nodes lack that were not even considered.
func (n needs) constraint(name string) string {
	switch {
	case name == "missing devices":
		return "no node has a free " + n.device
	case name == "missing drivers":
		return "no node has the drivers " + strings.Join(n.drivers, " and ")
	case strings.Contains(name, "attr.consul"):
		return "no node is connected to Consul"
	case strings.Contains(name, "attr.vault"):
		return "no node is connected to Vault"
	}
	return "no node meets: " + name
}

// exhausted says what nodes have too little of.
func (n needs) exhausted(dimension string) string {
	switch {
	case strings.HasPrefix(dimension, "devices"):
		return "no node has a free " + n.device
	case dimension == "memory":
		return fmt.Sprintf("no node has %d MB of memory free", n.memoryMB)
	case dimension == "cpu":
		return fmt.Sprintf("no node has %d MHz of CPU free", n.cpu)
	}
	return "nodes have too little of: " + dimension
}
