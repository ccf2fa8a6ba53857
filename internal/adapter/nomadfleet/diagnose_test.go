//go:build servers

package nomadfleet

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*jobs.Settings)
		nodes  Nodes
		lacks  string
	}{
		"room":   {func(*jobs.Settings) {}, Nodes{1, 1, 1}, ""},
		"glob":   {func(s *jobs.Settings) { s.Datacenters = []string{"moon", "dc*"} }, Nodes{1, 1, 1}, ""},
		"place":  {func(s *jobs.Settings) { s.Datacenters = []string{"moon"} }, Nodes{}, "no node is ready"},
		"memory": {func(s *jobs.Settings) { s.MemoryMB = 1 << 20 }, Nodes{1, 1, 1}, "MB of memory free"},
		"docker": {func(s *jobs.Settings) { s.Driver = "docker" }, Nodes{1, 1, 0}, "the drivers docker"},
	} {
		s := settings(t)
		s.Driver = "raw_exec"
		test.change(&s)
		d, err := open(t, s).Diagnose(t.Context())
		if err != nil || d.List != nil || d.Plan != nil || d.Leader == "" || d.Version == "" {
			t.Errorf("%s: got %+v, error %v", name, d, err)
			continue
		}
		if *d.Nodes != test.nodes || !strings.Contains(d.Lacking, test.lacks) || (d.Lacking == "") != (test.lacks == "") {
			t.Errorf("%s: got %+v, lacking %q", name, *d.Nodes, d.Lacking)
		}
	}
	if list, err := open(t, settings(t)).list(t.Context()); err != nil || strings.Contains(jobNames(list), "probe") {
		t.Errorf("the plan left %s, error %v", jobNames(list), err)
	}
}

func jobNames(list []*api.JobListStub) string {
	var names []string
	for _, one := range list {
		names = append(names, one.ID)
	}
	return strings.Join(names, " ")
}

func TestDiagnoseOfNobody(t *testing.T) {
	t.Parallel()
	conf := api.DefaultConfig()
	conf.Address = "http://127.0.0.1:1"
	f, err := Open(Config{API: conf, Jobs: settings(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := f.Diagnose(t.Context()); err == nil || !strings.Contains(err.Error(), conf.Address) {
		t.Errorf("got %+v, error %v", d, err)
	}
}
