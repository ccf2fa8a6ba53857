package deploy

import (
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/topsail-serving/topsail/test/require"
)

// same holds two sorted lists of names to each other.
func same(t *testing.T, a []string, where string, b []string, there string) {
	t.Helper()
	for _, name := range a {
		if !slices.Contains(b, name) {
			t.Errorf("%s is in %s and not in %s", name, where, there)
		}
	}
	for _, name := range b {
		if !slices.Contains(a, name) {
			t.Errorf("%s is in %s and not in %s", name, there, where)
		}
	}
}

var metricRow = regexp.MustCompile("(?m)^\\| `(topsail_\\w+)` \\| (counter|gauge|histogram) \\| ([^|]*)\\| [^|]+ \\| [^|]+ \\|$")

// metricsPage holds the page's tables to what there is, with kinds and labels.
func metricsPage(t *testing.T, m metrics) {
	var names []string
	for _, row := range metricRow.FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1) {
		name, kind, labels := row[1], row[2], strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		names = append(names, name)
		slices.Sort(labels)
		if one, known := m[name]; known && (one.kind != kind || !slices.Equal(one.labels, labels)) {
			t.Errorf("%s is a %s by %v, and documented as a %s by %v", name, one.kind, one.labels, kind, labels)
		}
	}
	same(t, slices.Sorted(slices.Values(names)), "docs/metrics.md", m.ours(), "processes")
}

// notMetrics begin as metrics do: measurements in InfluxDB, items of jobs, a function in R.
var notMetrics = []string{
	"topsail_alive", "topsail_demand", "topsail_decisions", "topsail_apps", "topsail_app_models", "topsail_versions", "topsail_stages", "topsail_deploy",
	"topsail_model", "topsail_version", "topsail_generation", "topsail_settings", "topsail_spec",
}

var ourName = regexp.MustCompile("`(topsail_[a-z_]+[a-z])[`{]")

// everyPage finds names of metrics that there are not.
func everyPage(t *testing.T, m metrics) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		for _, found := range ourName.FindAllStringSubmatch(read(t, page), -1) {
			if _, known := m[found[1]]; !known && !slices.Contains(notMetrics, found[1]) {
				t.Errorf("%s speaks of %s, which is not there", filepath.Base(page), found[1])
			}
		}
	}
}

func rulesOf(t *testing.T, m metrics) {
	all := rules(t)
	for _, r := range all {
		if _, err := m.check(r.expr, recorded(all)); err != nil {
			t.Errorf("rule %s%s: %v", r.alert, r.record, err)
		}
	}
}

// dashboardOf checks all expressions, and that there is something of every metric.
func dashboardOf(t *testing.T, m metrics) {
	shown := map[string]bool{}
	for where, list := range readDashboard(t, "topsail.json").expressions() {
		for _, expr := range list {
			names, err := m.check(expr, recorded(rules(t)))
			if err != nil {
				t.Errorf("%s: %v", where, err)
			}
			for _, name := range names {
				shown[name] = true
			}
		}
	}
	for _, name := range m.ours() {
		if !shown[name] {
			t.Errorf("the dashboard shows nothing of %s", name)
		}
	}
	for _, v := range readDashboard(t, "topsail.json").Templating.List[1:] {
		metric, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"), ", ")
		if !slices.Contains(m[metric].labels, label) {
			t.Errorf("variable %s: %s has no label %s", v.Name, metric, label)
		}
	}
}

var heading = regexp.MustCompile(`(?m)^### (Topsail\w+)$`)

// TestAlertsAreExplained holds the alerts to docs/operations.md, and to their tests.
func TestAlertsAreExplained(t *testing.T) {
	page, tests := read(t, "../docs/operations.md"), read(t, "prometheus/topsail.rules.test.yml")
	var alerts, explained []string
	for _, r := range rules(t) {
		if r.alert == "" {
			continue
		}
		alerts = append(alerts, r.alert)
		if !strings.Contains(r.text, "runbook: docs/operations.md#"+anchor(r.alert)+"\n") {
			t.Errorf("%s names another runbook", r.alert)
		}
		if !strings.Contains(tests, "alertname: "+r.alert+"\n") {
			t.Errorf("%s has no test", r.alert)
		}
	}
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		explained = append(explained, found[1])
	}
	same(t, alerts, "the rules", explained, "docs/operations.md")
}

var (
	shell = regexp.MustCompile("(?s)```sh\n(.*?)```")
	flag  = regexp.MustCompile(`(?:^|\s)(--[a-z][-a-z]*|-[a-z])\b`)
)

// TestCommandsOfThePage looks up every command of topsail in docs/operations.md.
func TestCommandsOfThePage(t *testing.T) {
	helps := map[string]string{}
	for _, block := range shell.FindAllStringSubmatch(read(t, "../docs/operations.md"), -1) {
		for line := range strings.Lines(block[1]) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "topsail" {
				continue
			}
			command := fields[1:2]
			if nouns := []string{"artifact", "decision", "environment", "job", "key", "version"}; slices.Contains(nouns, fields[1]) {
				command = fields[1:3]
			}
			name := strings.Join(command, " ")
			if helps[name] == "" {
				out, err := exec.Command(programs.topsail, append(command, "--help")...).Output()
				if err != nil || !strings.Contains(string(out), "topsail "+name) {
					t.Fatalf("topsail %s: %v\n%s", name, err, out)
				}
				helps[name] = string(out)
			}
			for _, found := range flag.FindAllStringSubmatch(line, -1) {
				if !regexp.MustCompile(`[ ,]` + found[1] + `[ ,]`).MatchString(helps[name]) {
					t.Errorf("topsail %s has no flag %s, in %q", name, found[1], line)
				}
			}
		}
	}
	if got := slices.Sorted(maps.Keys(helps)); len(got) < 6 {
		t.Errorf("the page has only the commands %v", got)
	}
}

// TestTheJobOfPrometheusScrapesTheSame: the configuration for a Prometheus of one's own, and that of the job for who has none.
func TestTheJobOfPrometheusScrapesTheSame(t *testing.T) {
	type config struct {
		Scrape []struct {
			Job     string           `yaml:"job_name"`
			Consul  []map[string]any `yaml:"consul_sd_configs"`
			Relabel []map[string]any `yaml:"relabel_configs"`
		} `yaml:"scrape_configs"`
	}
	_, job, found := strings.Cut(read(t, "../nomad/jobs/prometheus.nomad.hcl"), "<<-EOT\n")
	if !found {
		t.Fatal("the job has no configuration")
	}
	job, _, _ = strings.Cut(job, "EOT\n")
	for variable, value := range map[string]string{"${var.consul_addr}": "127.0.0.1:8500", "${var.sidecar_service}": "topsail-sidecar", "${indent(4, var.access)}": ""} {
		job = strings.ReplaceAll(job, variable, value)
	}
	var own, of config
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "prometheus/scrape.yml")), &own))
	require.NoError(t, yaml.Unmarshal([]byte(job), &of))
	for _, r := range own.Scrape[0].Relabel {
		delete(r, "separator") // of one label
	}
	if !reflect.DeepEqual(own, of) {
		t.Errorf("prometheus/scrape.yml says\n%v\nand the job\n%v", own, of)
	}
}
