package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// modelTable is one [[model]] of the file: one version of a model.
type modelTable struct {
	serving.Version
	Current bool `json:"current" help:"queries go to this version; by default to the last one of its model in the file"`
}

// complete gives a version the command that it does not name, and the folder that its command
// starts in.
func complete(v *serving.Version, folder string) *serving.Version {
	v.Origin = serving.FromFile
	if len(v.Command) == 0 && v.Bundle == "" && v.Image == "" && v.Addr == "" {
		switch {
		case runnable(v.Stages):
			v.Command = slices.Clone(pipelineCommand)
		case v.Host != nil:
			v.Command = serving.HostCommand()
		}
	}
	if v.Dir == "" && len(v.Command) > 0 {
		v.Dir = folder
	}
	return v
}

// versions completes and checks every version alone.
func (l *loader) versions() []*serving.Version {
	var versions []*serving.Version
	seen := map[serving.ModelID]string{} // id -> path
	for i := range l.doc.Model {
		if l.reported(element("model", i)) {
			continue // it is not a table
		}
		v, path := complete(&l.doc.Model[i].Version, l.file.dir), element("model", i)
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
		id := t.ModelID
		switch {
		case t.Current && chosen[id.Model]:
			l.wrong(element("model", i)+".current", "model %q has two current versions, %q and %q: keep one", id.Model, current[id.Model], id.Version)
		case t.Current || !chosen[id.Model]:
			current[id.Model] = id.Version
			chosen[id.Model] = t.Current
		}
	}
	return current
}
