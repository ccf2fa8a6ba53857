package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"topsail/serving"
)

// modelTable is one [[model]] of the file: one version of a model.
type modelTable struct {
	Name          string            `toml:"name" help:"the name that apps link"`
	Version       string            `toml:"version" accept:"string integer" help:"any name of this version"`
	Description   string            `toml:"description" help:"what people should know of it"`
	Current       bool              `toml:"current" help:"queries go to this version; by default to the last one of its model in the file"`
	InputType     serving.InputType `toml:"input_type" help:"bytes, ints, floats, doubles or strings"`
	InputLength   int               `toml:"input_length" help:"elements of every input; 0 is any number"`
	Labels        []string          `toml:"labels" help:"words to find the version by"`
	Replicas      int               `toml:"replicas" default:"1" help:"how many containers to run"`
	Scale         scaleTable        `toml:"scale"`
	Batch         batchTable        `toml:"batch"`
	Host          hostTable         `toml:"host"`
	HostedBy      string            `toml:"hosted_by" help:"the model whose replicas hold this version, instead of some of its own"`
	Resources     resourcesTable    `toml:"resources"`
	Command       []string          `toml:"command" help:"program and arguments of a container to start"`
	Dir           string            `toml:"dir" path:"true" help:"folder to start the command in; by default the folder of the file"`
	Env           map[string]string `toml:"env" secret:"true" help:"variables of the command beside the inherited ones"`
	Watch         []string          `toml:"watch" path:"true" help:"files and folders whose change restarts the command"`
	Bundle        string            `toml:"bundle" help:"digest of the bundle to run instead of a command, sha256:…"`
	BundleURL     string            `toml:"bundle_url" help:"where to fetch the bundle; by default from the management side"`
	ContainerAddr string            `toml:"container_addr" addr:"any" help:"address of a container that already listens"`
	Protocol      string            `toml:"protocol" help:"v1 for a container that listens, where PORT says or at container_addr; else v2"`
	ContainerPort int               `toml:"container_port" help:"of an image of version 1 that listens on one port always: that port"`
	Connections   int               `toml:"connections" help:"connections to a container that listens; 0 is 1"`
	Driver        string            `toml:"driver" help:"on a cluster: raw_exec, exec or docker; by default jobs.driver"`
	Image         string            `toml:"image" help:"on a cluster: image of the docker driver"`
	Artifacts     []artifactTable   `toml:"artifact"`
	Secrets       map[string]string `toml:"secrets" help:"on a cluster: variables of the command, by the item of the job's Nomad variable that has the value"`
	Stages        []stageTable      `toml:"stages"`
}

type batchTable struct {
	Strategy string        `toml:"strategy" default:"aimd" help:"aimd, quantile or fixed"`
	MaxSize  int           `toml:"max_size" help:"most inputs in a batch; 0 is no cap; for fixed, the size"`
	Delay    time.Duration `toml:"delay_micros" help:"how long a batch may wait to fill, in microseconds"`
	Pad      bool          `toml:"pad" help:"for fixed: smaller batches are filled up to the size with copies of an input, whose answers are dropped"`
}

// hostTable makes a version a host.
type hostTable struct {
	MemoryMB int `toml:"memory_mb" help:"makes it a host, which holds versions of other models: the memory that its container may take with them, in MiB"`
}

func (t hostTable) spec() *serving.HostSpec {
	if t == (hostTable{}) {
		return nil
	}
	return &serving.HostSpec{MemoryMB: t.MemoryMB}
}

// version converts the table. A command starts in folder unless the table says otherwise.
func (t *modelTable) version(folder string) *serving.Version {
	dir, stages := t.Dir, pipeline(t.Stages)
	command := t.Command
	if len(command) == 0 && t.Bundle == "" && t.Image == "" && t.ContainerAddr == "" {
		switch {
		case runnable(stages):
			command = slices.Clone(pipelineCommand)
		case t.Host != (hostTable{}):
			command = serving.HostCommand()
		}
	}
	if dir == "" && len(command) > 0 {
		dir = folder
	}
	return &serving.Version{
		ModelID:     serving.ModelID{Model: t.Name, Version: t.Version},
		Description: t.Description,
		InputType:   t.InputType,
		InputLength: t.InputLength,
		Labels:      t.Labels,
		Replicas:    t.Replicas,
		Scale:       t.Scale.spec(),
		Resources:   t.Resources.spec(),
		Batch:       serving.BatchSpec(t.Batch),
		Container: serving.ContainerSpec{
			Command:     command,
			Dir:         dir,
			Env:         t.Env,
			Addr:        t.ContainerAddr,
			Protocol:    t.Protocol,
			Port:        t.ContainerPort,
			Connections: t.Connections,
			Watch:       t.Watch,
			Bundle:      t.Bundle,
			BundleURL:   t.BundleURL,
			Driver:      t.Driver,
			Image:       t.Image,
			Artifacts:   artifacts(t.Artifacts),
			Secrets:     t.Secrets,
		},
		Stages:   stages,
		Host:     t.Host.spec(),
		HostedBy: t.HostedBy,
		Origin:   serving.FromFile,
	}
}

// versions builds and checks every version by itself.
func (l *loader) versions() []*serving.Version {
	var versions []*serving.Version
	seen := map[serving.ModelID]string{} // id -> path
	for i := range l.doc.Model {
		v, path := l.doc.Model[i].version(l.file.dir), element("model", i)
		prefix := fmt.Sprintf("model %q version %q: ", v.Model, v.Version)
		for _, err := range parts(v.Check()) {
			l.checked(stageAt(path, v.Stages, strings.TrimPrefix(err.Error(), prefix)), prefix, errors.Join(err))
		}
		if first, twice := seen[v.ModelID]; twice {
			l.wrong(path+".version", "model %q version %q is already defined in line %d", v.Model, v.Version, l.file.line(first))
		} else {
			seen[v.ModelID] = path
		}
		versions = append(versions, v)
	}
	return versions
}

// current finds the current version of every model: the one that says so, or
// else the last one in the file.
func (l *loader) current() map[string]string {
	current := map[string]string{}
	chosen := map[string]bool{} // models with a version that says so
	for i, t := range l.doc.Model {
		switch {
		case t.Current && chosen[t.Name]:
			l.wrong(element("model", i)+".current", "model %q has two current versions, %q and %q: keep one", t.Name, current[t.Name], t.Version)
		case t.Current || !chosen[t.Name]:
			current[t.Name] = t.Version
			chosen[t.Name] = t.Current
		}
	}
	return current
}
