// Package nomad is how Topsail itself runs on Nomad and Consul: job specs, the
// agents' configuration, policies and a pack. It is read by people; programs get
// the job specs from here.
package nomad

import (
	"embed"
	"fmt"
)

//go:embed jobs/*.nomad.hcl
var jobs embed.FS

// Job is the job specification of a role in HCL, with its variables: "gateway",
// "scheduler", "web", "stream", "backup", "redis" or "influxdb". The job's id is "topsail-" and the role.
func Job(role string) (string, error) {
	text, err := jobs.ReadFile("jobs/" + role + ".nomad.hcl")
	if err != nil {
		return "", fmt.Errorf("no job specification of %q: %w", role, err)
	}
	return string(text), nil
}
