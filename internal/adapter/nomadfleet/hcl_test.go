package nomadfleet

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
)

// jobOf is the job in HCL, of which it reads what package jobs writes: each value is JSON in a line of its own.
func jobOf(hcl string) *api.Job {
	id := regexp.MustCompile(`^job "(.*)"`).FindStringSubmatch(hcl)[1]
	group := &api.TaskGroup{
		Name: new(jobs.Group), Count: new(valueOf[int](hcl, "count")), ShutdownDelay: new(durationOf(hcl, "shutdown_delay")),
		Update: &api.UpdateStrategy{MaxParallel: new(valueOf[int](hcl, "max_parallel"))},
	}
	for _, text := range strings.Split(hcl, "\n    task ")[1:] {
		task := &api.Task{
			Name: regexp.MustCompile(`\w+`).FindString(text), Driver: valueOf[string](text, "driver"), KillTimeout: new(durationOf(text, "kill_timeout")),
			Config:    map[string]any{"command": valueOf[string](text, "command"), "args": valueOf[[]string](text, "args")},
			Resources: &api.Resources{CPU: new(valueOf[int](text, "cpu")), MemoryMB: new(valueOf[int](text, "memory"))}, Env: map[string]string{},
		}
		for _, variable := range regexp.MustCompile(`(?m)^ *"(\w+)" = `).FindAllStringSubmatch(text, -1) {
			task.Env[variable[1]] = valueOf[string](text, `"`+variable[1]+`"`)
		}
		group.Tasks = append(group.Tasks, task)
	}
	meta := map[string]string{}
	for _, name := range []string{jobs.MetaModel, jobs.MetaVersion, jobs.MetaGeneration, jobs.MetaSettings, jobs.MetaSpec} {
		meta[name] = valueOf[string](hcl, name)
	}
	return &api.Job{ID: &id, Meta: meta, TaskGroups: []*api.TaskGroup{group}}
}

// valueOf is the first value of a name in HCL.
func valueOf[T any](hcl, name string) (value T) {
	found := regexp.MustCompile(`(?m)^ *` + name + ` *= (.+)$`).FindStringSubmatch(hcl)
	if found == nil {
		return value
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(found[1], "$${", "${")), &value); err != nil {
		panic(fmt.Errorf("%s = %s: %w", name, found[1], err))
	}
	return value
}

func durationOf(hcl, name string) time.Duration {
	d, err := time.ParseDuration(valueOf[string](hcl, name))
	if err != nil {
		panic(err)
	}
	return d
}
