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
	cores         int
	drivers       []string
	device        string // "a free nvidia/gpu device"; empty: none
}

func needsOf(group *api.TaskGroup) needs {
	var n needs
	for _, task := range group.Tasks {
		n.drivers = append(n.drivers, task.Driver)
		if r := task.Resources; r != nil {
			n.memoryMB += *r.MemoryMB
			if r.CPU != nil {
				n.cpu += *r.CPU
			}
			if r.Cores != nil {
				n.cores += *r.Cores
			}
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
	name := d.Name
	if i := slices.IndexFunc(d.Constraints, func(c *api.Constraint) bool { return c.LTarget == "${device.model}" }); i >= 0 { // of a slice
		name += "/" + strings.NewReplacer(" MIG ", "", `\`, "", "$", "").Replace(d.Constraints[i].RTarget)
	}
	text := "a free " + name + " device"
	if d.Count != nil && *d.Count > 1 {
		text = fmt.Sprintf("%d free %s devices", *d.Count, name)
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
	lacking := map[string]int{} // nodes, by what they do not have
	for constraint, nodes := range m.ConstraintFiltered {
		lacking[n.constraint(constraint)] += nodes
	}
	for dimension, nodes := range m.DimensionExhausted {
		lacking[n.dimension(dimension)] += nodes
	}
	var reasons []string
	for _, what := range slices.Sorted(maps.Keys(lacking)) {
		if nodes := lacking[what]; nodes < m.NodesEvaluated {
			reasons = append(reasons, fmt.Sprintf("%d of %d nodes do not have %s", nodes, m.NodesEvaluated, what))
		} else {
			reasons = append(reasons, "no node has "+what)
		}
	}
	for _, quota := range m.QuotaExhausted {
		reasons = append(reasons, "the quota is used up: "+quota)
	}
	if len(reasons) == 0 {
		return fmt.Sprintf("none of %d nodes takes a replica", m.NodesEvaluated)
	}
	return strings.Join(reasons, "; ")
}

// constraint is what a node does not have that was not even considered.
func (n needs) constraint(name string) string {
	switch {
	case name == "missing devices":
		return n.device
	case name == "missing drivers":
		return "the drivers " + strings.Join(n.drivers, " and ")
	case strings.Contains(name, "attr.consul"):
		return "a connection to Consul"
	case strings.Contains(name, "attr.vault"):
		return "a connection to Vault"
	}
	return "what the job asks for: " + name
}

// dimension is what a node has too little of.
func (n needs) dimension(name string) string {
	switch {
	case strings.HasPrefix(name, "devices"):
		return n.device
	case name == "memory":
		return fmt.Sprintf("%d MB of memory free", n.memoryMB)
	case name == "cpu":
		return fmt.Sprintf("%d MHz of CPU free", n.cpu)
	case name == "cores":
		return fmt.Sprintf("%d CPUs that no other job has", n.cores)
	case name == collision:
		return "its ports in order: two of its allocations hold the same one"
	}
	return "enough of: " + name
}
