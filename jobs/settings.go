package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Settings are what the jobs of all versions of a cluster have in common. A zero
// field means its default.
type Settings struct {
	Region      string // Nomad's default
	Namespace   string
	Datacenters []string // all
	NodePool    string

	Program   Program
	Driver    string // of containers that name none; "raw_exec"
	CPU       int    // MHz of containers that ask for none; 500
	MemoryMB  int    // of containers that ask for none; 300
	VaultRole string // gives containers a Vault token of this role; none

	// For versions with a bundle, whose jobs alone are others with other ones.
	BundlesURL   string `json:"-"` // of the management service, as nodes reach it to fetch bundles; where Consul says that it is
	RuntimeImage string `json:"-"` // that runs bundles with the driver "docker": topsail is its entrypoint, and it has Python; none
	WorkDir      string `json:"-"` // on the nodes, for what bundles are unpacked and installed into; the user's cache folder

	Provider       string        // where sidecars are registered: "consul" or "nomad"; "consul"
	Service        string        // their service; "topsail-sidecar"
	HealthInterval time.Duration // between health checks; 2 s
	KillTimeout    time.Duration `json:"-"` // in which the last answers of a replica end, those in parts included; 30 s. It changes in place
	Mesh           bool          // sidecars are in Consul's service mesh

	TLS        TLS
	TokenFile  string            // on the nodes: the token that gateways show to sidecars
	SidecarEnv map[string]string // more variables of sidecars, such as TOPSAIL_INFLUXDB_URL
}

// providerConsul registers sidecars in Consul; the other provider is Nomad.
const providerConsul = "consul"

// TLS names the files, on the nodes, of the sidecars' own mutual TLS.
type TLS struct {
	CertFile, KeyFile, CAFile string

	ServerName string `json:"-"` // that the certificate of management has; its address
}

// own says whether the sidecars have certificates of their own.
func (t TLS) own() bool { return t.CertFile != "" || t.KeyFile != "" || t.CAFile != "" }

var serviceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// defaults fills in the fields that are zero.
func (s Settings) defaults() Settings {
	set(&s.Driver, "raw_exec")
	set(&s.Program.Driver, "raw_exec")
	set(&s.Provider, providerConsul)
	set(&s.Service, "topsail-sidecar")
	set(&s.CPU, 500)
	set(&s.MemoryMB, 300)
	set(&s.Program.CPU, 200)
	set(&s.Program.MemoryMB, 128)
	set(&s.HealthInterval, 2*time.Second)
	set(&s.KillTimeout, mostOfClients)
	if len(s.Datacenters) == 0 {
		s.Datacenters = []string{"*"}
	}
	return s
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Check says everything that is wrong with the settings, or nil.
func (s Settings) Check() error {
	s = s.defaults()
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("jobs: "+format, args...)) }
	if s.Program.Source == "" {
		wrong("needs the path or URL of the topsail program on the nodes")
	}
	if s.Program.fetched() && s.Program.Checksum == "" {
		wrong("a program that is fetched from a URL needs a checksum such as sha256:…")
	}
	for _, driver := range []string{s.Driver, s.Program.Driver} {
		if driver != "raw_exec" && driver != "exec" && driver != docker {
			wrong("driver %q is unknown: use \"raw_exec\", \"exec\" or \"docker\"", driver)
		}
	}
	if s.Provider != providerConsul && s.Provider != "nomad" {
		wrong("service provider %q is unknown: use \"consul\" or \"nomad\"", s.Provider)
	}
	if !serviceName.MatchString(s.Service) {
		wrong("service %q: use up to 63 lower-case letters, digits or '-'", s.Service)
	}
	if s.Mesh && (s.Provider != providerConsul || s.TLS.own()) {
		wrong("the service mesh is Consul's and encrypts by itself: use it with the provider \"consul\" and without own certificates")
	}
	if t := s.TLS; t.own() && (t.CertFile == "" || t.KeyFile == "" || t.CAFile == "") {
		wrong("mutual TLS needs all three of the certificate, its key and the CA")
	}
	for name := range s.SidecarEnv {
		if err := checkVariable(name); err != nil {
			wrong("%w", err)
		}
	}
	return errors.Join(errs...)
}

// Hash tells settings that give the same jobs from those that do not.
func (s Settings) Hash() string {
	text, err := json.Marshal(s.defaults())
	if err != nil {
		panic(err) // there is nothing in Settings that JSON cannot hold
	}
	return hash(string(text))
}
