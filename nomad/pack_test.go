//go:build servers

package nomad

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"text/template"

	nomadapi "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/test/require"
)

func spec(t *testing.T, role string) string {
	t.Helper()
	text, err := Job(role)
	require.NoError(t, err)
	return text
}

// writtenPack is the folder of a pack that was just written.
func writtenPack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, WritePack(dir))
	return dir
}

// TestPackRenders renders the pack as Nomad Pack does, and holds what Nomad reads
// to what it reads from the jobs.
func TestPackRenders(t *testing.T) {
	c, pack := shared, writtenPack(t)
	defaults := c.packDefaults(t, pack)
	for name, values := range map[string]variables{
		"defaults": {},
		"closed":   without(without(closed, "secrets"), "keys_file"),
		"values": {
			"datacenters": []string{"dc1", "dc2"}, "namespace": namespace, "count": 3, "cpu": 123,
			"env": map[string]string{"A": "${NOMAD_ALLOC_ID} %{x} <&> \"\\ \n", "B": "ö"},
		},
	} {
		for _, role := range packed {
			t.Run(role+"/"+name, func(t *testing.T) {
				t.Parallel()
				vars, own := with(defaults, variables{"with_stream": true, "with_backup": true, "with_redis": true, "with_influxdb": true}), variables{}
				for key, value := range values {
					if strings.Contains(spec(t, role), fmt.Sprintf("variable %q", key)) {
						vars[packName(role, key)], own[key] = value, value
					}
				}
				got, err := c.root.Jobs().ParseHCLOpts(&nomadapi.JobsParseRequest{JobHCL: render(t, pack, role, vars), Canonicalize: true})
				require.NoError(t, err)
				if want, err := c.parse(t, role, own); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("the pack renders another job than %s.nomad.hcl with %v (%v)", role, own, err)
				}
			})
		}
	}
}

// TestPackRunsNoServersUnasked: Nomad Pack leaves out what renders to nothing.
func TestPackRunsNoServersUnasked(t *testing.T) {
	pack := writtenPack(t)
	defaults := shared.packDefaults(t, pack)
	for _, role := range optional {
		if got := strings.TrimSpace(render(t, pack, role, defaults)); got != "" {
			t.Errorf("%s is run unasked:\n%s", role, got)
		}
	}
}

func TestPackSaysWhereToLook(t *testing.T) {
	got := render(t, writtenPack(t), "outputs", variables{"namespace": namespace, "gateway_port": 1337, "web_port": 1338})
	if !strings.Contains(got, "nomad job status -namespace topsail topsail-gateway") || !strings.Contains(got, "Topsail 0.1.0") {
		t.Errorf("it says:\n%s", got)
	}
}

// packDefaults has Nomad read the variables of the pack.
func (c *cluster) packDefaults(t *testing.T, pack string) variables {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pack, "variables.hcl"))
	require.NoError(t, err)
	job := string(text) + "\njob \"variables\" {\n  meta = {\n"
	for _, block := range variableBlock.FindAllStringSubmatch(string(text), -1) {
		job += fmt.Sprintf("    %s = jsonencode(var.%s)\n", block[1], block[1])
	}
	parsed, err := c.root.Jobs().ParseHCL(job+"  }\n}\n", false)
	require.NoError(t, err)
	all := variables{}
	for name, value := range parsed.Meta {
		var v any
		require.NoError(t, json.Unmarshal([]byte(value), &v))
		all[name] = v
	}
	return all
}

// render does what Nomad Pack does with a template of the pack.
func render(t *testing.T, pack, name string, vars variables) string {
	t.Helper()
	file := filepath.Join(pack, "templates", name+".nomad.tpl")
	if name == "outputs" {
		file = filepath.Join(pack, "outputs.tpl")
	}
	functions := template.FuncMap{
		"var":     func(name string, v variables) any { return v[name] },
		"meta":    func(string, variables) string { return "0.1.0" },
		"toJson":  func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err },
		"replace": func(from, to, text string) string { return strings.ReplaceAll(text, from, to) },
	}
	all := template.New("pack").Delims("[[", "]]").Funcs(functions)
	if _, err := all.ParseFiles(filepath.Join(pack, "templates", "_helpers.tpl"), file); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	require.NoError(t, all.ExecuteTemplate(&out, filepath.Base(file), vars))
	return out.String()
}
