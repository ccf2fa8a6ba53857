package nomad

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

// roleSpec is what the template of the jobs of Topsail's roles needs of one, beside its name.
type roleSpec struct {
	Name               string
	Process, Processes string // what its instances are called
	Count              int
	CountHelp          string
	CPU, MemoryMB      int
	EnvExample         string
	ShutdownDelay      string // in HCL, as is KillTimeout
	KillTimeout        string
	Fleet              bool // it asks Nomad, and knows what goes into the jobs of models

	// Of a role that others ask.
	Port     int // 0: none do
	PortHelp string
	Clients  string // who have keys
	DataHelp string
}

//go:embed role.nomad.hcl.tmpl
var roleTemplate string

// WriteJobs writes the jobs of Topsail's roles into dir: nomad/jobs, where people take them from.
func WriteJobs(dir string) error {
	t, err := template.New("role").Delims("<<", ">>").Parse(roleTemplate) // HCL and Nomad have brackets and braces of their own
	if err != nil {
		return err
	}
	for _, r := range []roleSpec{
		{
			Name: "gateway", Process: "gateway", Processes: "gateways",
			Count: 1, CountHelp: "a system job ignores it", CPU: 500, MemoryMB: 256,
			EnvExample: "TOPSAIL_LOG_LEVEL", ShutdownDelay: "var.shutdown_delay",
			KillTimeout: `"20s" # longer than TOPSAIL_GATEWAY_DRAIN_TIMEOUT_MICROS, in which queries in flight end`,
			Port:        1337, PortHelp: "port for queries; 0 lets Nomad choose, which several gateways on one node need", Clients: "queries",
			DataHelp: "folder of the last good state, from which a gateway starts while Redis is unavailable",
		},
		{
			Name: "scheduler", Process: "scheduler", Processes: "schedulers",
			Count: 2, CountHelp: "with a single node it is 1", CPU: 200, MemoryMB: 256,
			EnvExample: "TOPSAIL_JOBS_DRIVER", ShutdownDelay: `"1s"`, KillTimeout: `"15s" # to hand over the lead`, Fleet: true,
		},
		{
			Name: "web", Process: "process", Processes: "management processes",
			Count: 2, CountHelp: "with a single node it is 1", CPU: 200, MemoryMB: 512,
			EnvExample: "TOPSAIL_LOG_LEVEL", ShutdownDelay: `"2s"`, KillTimeout: `"15s"`, Fleet: true,
			Port: 1338, PortHelp: "port of the admin API and the web UI; 0 lets Nomad choose", Clients: "administrators",
			DataHelp: "folder of uploads and of the last good state, and of the bundles where bundles is empty",
		},
		{
			Name: "stream", Process: "process", Processes: "processes",
			Count: 1, CountHelp: "a stream has work for as many as it has partitions", CPU: 500, MemoryMB: 256,
			EnvExample: "TOPSAIL_STREAMS_ONLY", ShutdownDelay: `"1s"`,
			KillTimeout: `"20s" # longer than TOPSAIL_STREAMS_DRAIN_TIMEOUT_MICROS, in which the records in flight end`,
		},
	} {
		var text bytes.Buffer
		if err := t.Execute(&text, r); err != nil {
			return fmt.Errorf("render the job of %s: %w", r.Name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, r.Name+".nomad.hcl"), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
