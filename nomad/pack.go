package nomad

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// packFiles are those of the pack that are not made from the jobs.
//
//go:embed all:pack
var packFiles embed.FS

var (
	packed = []string{"gateway", "scheduler", "web", "stream", "backup", "redis", "influxdb"}

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

// WritePack writes all jobs as a pack for Nomad Pack into dir, which has none yet.
func WritePack(dir string) error {
	specs := map[string]string{}
	for _, role := range packed {
		text, err := Job(role)
		if err != nil {
			return err
		}
		specs[role] = text
	}
	files, err := fs.Sub(packFiles, "pack")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return err
	}
	text, err := packVariables(specs)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "variables.hcl"), []byte(text), 0o644); err != nil {
		return err
	}
	for role, spec := range specs {
		if err := os.WriteFile(filepath.Join(dir, "templates", role+".nomad.tpl"), []byte(packTemplate(role, spec)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

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
func packTemplate(role, spec string) string {
	text := spec[strings.Index(spec, "variable "):] // what is before tells how to run it without the pack
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

// packVariables are the variables of all roles. It fails where two roles give one name two meanings.
func packVariables(specs map[string]string) (string, error) {
	var text strings.Builder
	text.WriteString("# Made from the jobs: see the README.\n")
	for _, role := range optional {
		why := map[string]string{
			"stream": "serve data streams, too; stream_config has them",
			"backup": "make backups, too, at backup_crons and to backup_destination",
		}[role]
		if slices.Contains(others, role) {
			why = "run " + role + ", too, for those who have none"
		}
		fmt.Fprintf(&text, "\nvariable %q {\n  description = %q\n  type        = bool\n  default     = false\n}\n", "with_"+role, why)
	}
	seen := map[string]string{}
	for _, role := range packed {
		for _, block := range variableBlock.FindAllStringSubmatch(specs[role], -1) {
			name := packName(role, block[1])
			declared := validation.ReplaceAllString(strings.Replace(block[0], block[1], name, 1), "")
			switch before, known := seen[name]; {
			case !known:
				text.WriteString("\n" + declared)
			case before != declared:
				return "", fmt.Errorf("%s means something else for %s:\n%s\n%s", name, role, before, declared)
			}
			seen[name] = declared
		}
	}
	return text.String(), nil
}
