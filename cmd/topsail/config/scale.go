package config

import (
	"time"

	"topsail/serving"
)

// scaleTable is [model.scale]: with a max the number of replicas follows demand.
type scaleTable struct {
	Min          int           `toml:"min" help:"least replicas; 0 goes down to none when idle"`
	Max          int           `toml:"max" help:"most replicas; with it their number follows demand, and replicas is where it starts"`
	Metric       string        `toml:"metric" help:"capacity, concurrency or rate; by default capacity"`
	Target       float64       `toml:"target" help:"for each replica, of concurrency or rate"`
	Utilisation  float64       `toml:"utilisation" help:"share of the capacity or target to aim at; 0 is the scheduler's default"`
	Idle         time.Duration `toml:"idle_micros" help:"how long without a query before the last replica goes, in microseconds; 0 is the default"`
	StepUp       float64       `toml:"step_up" help:"most that one decision multiplies by; 0 is the default"`
	StepDown     float64       `toml:"step_down" help:"most that one decision divides by; 0 is the default"`
	CooldownUp   time.Duration `toml:"cooldown_up_micros" help:"least time from a change to an increase, in microseconds"`
	CooldownDown time.Duration `toml:"cooldown_down_micros" help:"least time from a change to a decrease, in microseconds; 0 is the default"`
	DeadBand     float64       `toml:"dead_band" help:"relative difference that is not worth a change; 0 is the default"`
}

// spec is nil for a table that is not there.
func (t *scaleTable) spec() *serving.ScaleSpec {
	if *t == (scaleTable{}) {
		return nil
	}
	spec := serving.ScaleSpec(*t)
	return &spec
}

// resourcesTable is [model.resources].
type resourcesTable struct {
	CPU      int      `toml:"cpu" help:"on a cluster: MHz; by default jobs.cpu"`
	MemoryMB int      `toml:"memory_mb" help:"on a cluster: memory; by default jobs.memory_mb"`
	GPU      gpuTable `toml:"gpu"`
}

type gpuTable struct {
	Count    int    `toml:"count" help:"accelerators that each replica has to itself"`
	Device   string `toml:"device" help:"vendor/type or vendor/type/name; by default nvidia/gpu, and local mode knows no other type"`
	MemoryMB int    `toml:"memory_mb" help:"least memory of each accelerator"`
	Runtime  string `toml:"runtime" help:"on a cluster: runtime of the docker driver; by default nvidia"`
}

func (t *resourcesTable) spec() serving.Resources {
	return serving.Resources{CPU: t.CPU, MemoryMB: t.MemoryMB, GPU: serving.GPU(t.GPU)}
}

// artifactTable is one [[model.artifact]].
type artifactTable struct {
	Source      string `toml:"source" help:"on a cluster: URL of a file or archive that the node fetches"`
	Checksum    string `toml:"checksum" help:"on a cluster: of the artifact, sha256:…"`
	Destination string `toml:"destination" help:"on a cluster: folder in the task's folder"`
}

func artifacts(tables []artifactTable) []serving.Artifact {
	var all []serving.Artifact
	for _, t := range tables {
		all = append(all, serving.Artifact(t))
	}
	return all
}
