package jobs

import (
	"fmt"
	"maps"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// newSidecar is the task of topsail itself.
func newSidecar(s Spec) *api.Task {
	p := s.Settings.Program
	run := command{program: p.path(), args: []string{"sidecar"}}
	if p.Driver == docker { // its entrypoint is the program
		run.image, run.program = p.Source, ""
	}
	t := newTask(Sidecar, p.Driver, run, s.Settings)
	t.Env = sidecarEnv(s)
	t.Artifacts = p.artifacts()
	t.Resources = &api.Resources{CPU: &p.CPU, MemoryMB: &p.MemoryMB}
	if s.Version.Host != nil && s.Settings.BundlesURL == "" {
		knowManagement(t)
	}
	if s.Settings.Mesh {
		t.Templates = append(t.Templates, meshCertificates(s.Settings.Service)...)
	}
	return t
}

// sidecarEnv tells the sidecar everything, by the names of its settings.
func sidecarEnv(s Spec) map[string]string {
	env := map[string]string{
		"TOPSAIL_SIDECAR_REPLICA":              "${NOMAD_ALLOC_ID}",
		"TOPSAIL_SIDECAR_ADDR":                 "${NOMAD_ADDR_rpc}",
		"TOPSAIL_SIDECAR_CONTAINERS_ADDR":      "127.0.0.1:${NOMAD_PORT_containers}",
		"TOPSAIL_SIDECAR_CONTAINER_TOKEN_FILE": tokenFile,
		modelsVariable:                         s.Version.SidecarJSON(),
		"TOPSAIL_OPS_ADDR":                     "${NOMAD_ADDR_ops}",
	}
	for name, value := range map[string]string{
		"TOPSAIL_TLS_CERT_FILE":      s.Settings.TLS.CertFile,
		"TOPSAIL_TLS_KEY_FILE":       s.Settings.TLS.KeyFile,
		"TOPSAIL_TLS_CA_FILE":        s.Settings.TLS.CAFile,
		"TOPSAIL_SIDECAR_TOKEN_FILE": s.Settings.TokenFile,
	} {
		if value != "" {
			env[name] = value
		}
	}
	if c := s.Version.Container; c.Listens() {
		env["TOPSAIL_SIDECAR_CONTAINER_ADDR"] = addrOf(c)
	}
	if s.Version.Host != nil {
		env["TOPSAIL_SIDECAR_MODELS_DIR"] = modelsDir
		if url := s.Settings.BundlesURL; url != "" {
			env["TOPSAIL_SIDECAR_BUNDLES_URL"] = url
		} else {
			env["TOPSAIL_SIDECAR_MANAGEMENT_FILE"] = managementFile
		}
	}
	maps.Copy(env, s.Settings.SidecarEnv)
	return env
}

// modelsVariable says what a sidecar serves.
const modelsVariable = "TOPSAIL_SIDECAR_MODELS"

// GenerationIn is the generation of the version that a sidecar with this environment serves; empty where it has none.
func GenerationIn(env map[string]string) string {
	models, err := serving.ParseSidecarVersions([]byte(env[modelsVariable]))
	if err != nil || len(models) != 1 {
		return ""
	}
	return models[0].Generation
}

// tokenFile is where the sidecar writes the token that its container shows. Each
// task finds the shared folder where its driver puts it.
const tokenFile = "${NOMAD_ALLOC_DIR}/data/container.token"

// modelsDir is where the sidecar of a host puts the bundles that its container loads.
const modelsDir = "${NOMAD_ALLOC_DIR}/data/models"

// meshTLS is where the sidecar finds what the mesh gives it. Gateways choose among
// replicas, which a proxy of the mesh would do for them, so there is none: the
// sidecar speaks mutual TLS itself, with the mesh's certificates.
var meshTLS = TLS{
	CertFile: "${NOMAD_SECRETS_DIR}/cert.pem",
	KeyFile:  "${NOMAD_SECRETS_DIR}/key.pem",
	CAFile:   "${NOMAD_SECRETS_DIR}/ca.pem",
}

// meshCertificates keeps in files what the mesh gives the sidecar, which reads them again when they change.
func meshCertificates(service string) []*api.Template {
	key := newTemplate(meshTLS.KeyFile, fmt.Sprintf("{{ with caLeaf %q }}{{ .PrivateKeyPEM }}{{ end }}", service))
	key.Perms = new("0600")
	return []*api.Template{
		newTemplate(meshTLS.CertFile, fmt.Sprintf("{{ with caLeaf %q }}{{ .CertPEM }}{{ end }}", service)),
		key,
		newTemplate(meshTLS.CAFile, "{{ range caRoots }}{{ .RootCertPEM }}{{ end }}"),
	}
}
