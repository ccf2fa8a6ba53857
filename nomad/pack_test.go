package nomad

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	nomadapi "github.com/hashicorp/nomad/api"
)

var update = flag.Bool("update", false, "make the pack from the jobs")

const packDir = "pack/packs/topsail"

var (
	roles = []string{"gateway", "scheduler", "web", "stream", "backup", "redis", "influxdb"}

	// optional roles are run on request, and others' are not of Topsail itself.
	optional = []string{"stream", "backup", "redis", "influxdb"}
	others   = []string{"redis", "influxdb"}

	// commonToAll are the variables that mean the same for every job, and commonToOurs
	// those that do for the jobs of Topsail itself. The others get the role's name.
	commonToAll  = []string{"datacenters", "namespace", "node_pool", "host_network", "service_provider"}
	commonToOurs = []string{
		"program", "checksum", "driver", "image", "redis_addrs", "redis_password_file", "influxdb_url", "influxdb_token_file",
		"consul_addr", "consul_token_file", "consul_identity", "nomad_addr", "nomad_token_file",
		"cert_file", "key_file", "ca_file", "ops_keys_file", "sidecar_token_file",
	}
)

// packName is what the pack calls a variable of a role.
func packName(role, name string) string {
	if slices.Contains(commonToAll, name) || !slices.Contains(others, role) && slices.Contains(commonToOurs, name) {
		return name
	}
	return role + "_" + name
}

var (
	variableBlock = regexp.MustCompile(`(?ms)^variable "(\w+)" \{\n.*?^\}\n`)
	defaultValue  = regexp.MustCompile(`(?m)^(  default     = ).*$`)
	ownNamespace  = regexp.MustCompile(`(?m)^(  namespace   = )var\.namespace$`)
	validation    = regexp.MustCompile(`(?ms)\n\n  validation \{.*?^  \}`)
)

// packTemplate is the job of a role with the pack's variables as its defaults.
// Nomad Pack reads the namespace from the job before Nomad does, so it stands there.
func packTemplate(t *testing.T, role string) string {
	text := spec(t, role)
	text = text[strings.Index(text, "variable "):] // what is before tells how to run it without the pack
	text = variableBlock.ReplaceAllStringFunc(text, func(block string) string {
		name := packName(role, variableBlock.FindStringSubmatch(block)[1])
		return defaultValue.ReplaceAllString(block, fmt.Sprintf(`${1}[[ template "value" (var %q .) ]]`, name))
	})
	text = ownNamespace.ReplaceAllString(text, `${1}[[ template "value" (var "namespace" .) ]]`)
	text = "# Made from the job " + role + ".nomad.hcl: see the README of the pack.\n\n" + text
	if slices.Contains(optional, role) {
		text = fmt.Sprintf("[[ if var %q . -]]\n%s[[ end -]]\n", "with_"+role, text)
	}
	return text
}

// packVariables are the variables of all roles.
func packVariables(t *testing.T) string {
	text := "# Made from the jobs: see the README.\n"
	for _, role := range optional {
		why := map[string]string{
			"stream": "serve data streams, too; stream_config has them",
			"backup": "make backups, too, at backup_crons and to backup_destination",
		}[role]
		if slices.Contains(others, role) {
			why = "run " + role + ", too, for those who have none"
		}
		text += fmt.Sprintf("\nvariable %q {\n  description = %q\n  type        = bool\n  default     = false\n}\n", "with_"+role, why)
	}
	seen := map[string]string{}
	for _, role := range roles {
		for _, block := range variableBlock.FindAllStringSubmatch(spec(t, role), -1) {
			name := packName(role, block[1])
			declared := validation.ReplaceAllString(strings.Replace(block[0], block[1], name, 1), "")
			switch before, known := seen[name]; {
			case !known:
				text += "\n" + declared
			case before != declared:
				t.Errorf("%s means something else for %s:\n%s\n%s", name, role, before, declared)
			}
			seen[name] = declared
		}
	}
	return text
}

func spec(t *testing.T, role string) string {
	t.Helper()
	text, err := Job(role)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPackIsMadeFromTheJobs(t *testing.T) {
	want := map[string]string{"variables.hcl": packVariables(t)}
	for _, role := range roles {
		want["templates/"+role+".nomad.tpl"] = packTemplate(t, role)
	}
	for name, text := range want {
		path := filepath.Join(packDir, name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s is not as the jobs are (%v): run go test ./nomad -run Pack -update", path, err)
		}
	}
}

// TestPackRenders renders the pack as Nomad Pack does, and holds what Nomad reads
// to what it reads from the jobs.
func TestPackRenders(t *testing.T) {
	c := shared
	defaults := c.packDefaults(t)
	for name, values := range map[string]variables{
		"defaults": {},
		"closed":   without(without(closed, "secrets"), "keys_file"),
		"values": {
			"datacenters": []string{"dc1", "dc2"}, "namespace": namespace, "count": 3, "cpu": 123,
			"env": map[string]string{"A": "${NOMAD_ALLOC_ID} %{x} <&> \"\\ \n", "B": "ö"},
		},
	} {
		for _, role := range roles {
			t.Run(role+"/"+name, func(t *testing.T) {
				t.Parallel()
				vars, own := with(defaults, variables{"with_stream": true, "with_backup": true, "with_redis": true, "with_influxdb": true}), variables{}
				for key, value := range values {
					if strings.Contains(spec(t, role), fmt.Sprintf("variable %q", key)) {
						vars[packName(role, key)], own[key] = value, value
					}
				}
				got, err := c.root.Jobs().ParseHCLOpts(&nomadapi.JobsParseRequest{JobHCL: render(t, role, vars), Canonicalize: true})
				if err != nil {
					t.Fatal(err)
				}
				if want, err := c.parse(t, role, own); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("the pack renders another job than %s.nomad.hcl with %v (%v)", role, own, err)
				}
			})
		}
	}
}

// TestPackRunsNoServersUnasked: Nomad Pack leaves out what renders to nothing.
func TestPackRunsNoServersUnasked(t *testing.T) {
	defaults := shared.packDefaults(t)
	for _, role := range optional {
		if got := strings.TrimSpace(render(t, role, defaults)); got != "" {
			t.Errorf("%s is run unasked:\n%s", role, got)
		}
	}
}

func TestPackSaysWhereToLook(t *testing.T) {
	got := render(t, "outputs", variables{"namespace": namespace, "gateway_port": 1337, "web_port": 1338})
	if !strings.Contains(got, "nomad job status -namespace topsail topsail-gateway") || !strings.Contains(got, "Topsail 0.1.0") {
		t.Errorf("it says:\n%s", got)
	}
}

// packDefaults has Nomad read the variables of the pack.
func (c *cluster) packDefaults(t *testing.T) variables {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(packDir, "variables.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	job := string(text) + "\njob \"variables\" {\n  meta = {\n"
	for _, block := range variableBlock.FindAllStringSubmatch(string(text), -1) {
		job += fmt.Sprintf("    %s = jsonencode(var.%s)\n", block[1], block[1])
	}
	parsed, err := c.root.Jobs().ParseHCL(job+"  }\n}\n", false)
	if err != nil {
		t.Fatal(err)
	}
	all := variables{}
	for name, value := range parsed.Meta {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		all[name] = v
	}
	return all
}

// render does what Nomad Pack does with a template of the pack.
func render(t *testing.T, name string, vars variables) string {
	t.Helper()
	file := filepath.Join(packDir, "templates", name+".nomad.tpl")
	if name == "outputs" {
		file = filepath.Join(packDir, "outputs.tpl")
	}
	functions := template.FuncMap{
		"var":     func(name string, v variables) any { return v[name] },
		"meta":    func(string, variables) string { return "0.1.0" },
		"toJson":  func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err },
		"replace": func(from, to, text string) string { return strings.ReplaceAll(text, from, to) },
	}
	all := template.New("pack").Delims("[[", "]]").Funcs(functions)
	if _, err := all.ParseFiles(filepath.Join(packDir, "templates", "_helpers.tpl"), file); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := all.ExecuteTemplate(&out, filepath.Base(file), vars); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
