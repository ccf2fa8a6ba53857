package serving

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// ServiceSpec makes a version a service that others run: gateways call its instances by a protocol of
// theirs, and Topsail neither starts nor stops them.
type ServiceSpec struct {
	Name         string   `json:"name,omitempty" help:"makes the version a service that others run: its name in Consul; instances that pass their checks are called" flag:"service"`
	Addrs        []string `json:"addrs,omitempty" help:"instead of its name in Consul: where its instances are, as host:port or URLs" flag:"service-addr"`
	Protocol     string   `json:"protocol" required:"yes" help:"what the service speaks: oip, the Open Inference Protocol over REST, or openai" flag:"service-protocol"`
	Model        string   `json:"model,omitempty" help:"the service's name of the model; by default, that of the model with oip, and with openai the first that it lists" flag:"service-model"`
	ModelVersion string   `json:"model_version,omitempty" help:"with oip, the service's version of the model; by default the one that it chooses" flag:"service-model-version"`
	APIKeyFile   string   `json:"api_key_file,omitempty" path:"true" help:"file with the key that the service wants, where gateways run" flag:"service-api-key-file"`
	ReadyPath    string   `json:"ready_path,omitempty" help:"path that answers 200 when the service is ready; by default /health with openai, and the model's own with oip" flag:"service-ready-path"`
	Concurrency  int      `json:"concurrency,omitempty" help:"most queries that an instance gets at a time from a gateway; 0: as many as it answers in time" flag:"service-concurrency"`
}

// What a service may speak.
const (
	ServiceOIP    = "oip"
	ServiceOpenAI = "openai"
)

const (
	maxServiceAddrs       = 64
	maxServiceConcurrency = 65536
)

// OwnReplicas says whether the version is run by replicas that Topsail starts for it, and not by those of a
// host or by a service.
func (v *Version) OwnReplicas() bool { return v.HostedBy == "" && v.Service == nil }

// ReadyPath is what answers 200 when an instance of the service that v is has it ready.
func (v *Version) ReadyPath() string {
	s := v.Service
	if s.ReadyPath != "" || s.Protocol == ServiceOpenAI {
		return cmp.Or(s.ReadyPath, "/health")
	}
	return s.OIPPath(v.Model) + "/ready"
}

// OIPPath is the path of the model in the Open Inference Protocol, by its own name unless the service has another one.
func (s *ServiceSpec) OIPPath(model string) string {
	path := "/v2/models/" + url.PathEscape(cmp.Or(s.Model, model))
	if s.ModelVersion != "" {
		path += "/versions/" + url.PathEscape(s.ModelVersion)
	}
	return path
}

// URL is where an instance is that an address names: http unless it says otherwise, without a slash at
// its end.
func (s *ServiceSpec) URL(addr string) string {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	return strings.TrimRight(addr, "/")
}

// serviceProblems are what is wrong with a version that is a service.
func (v *Version) serviceProblems() (errs []error) {
	s, c := v.Service, v.Container
	if s == nil {
		return nil
	}
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("service: "+format, args...)) }
	if (s.Name == "") == (len(s.Addrs) == 0) {
		wrong("give either its name in Consul or addrs, where its instances are")
	}
	if len(s.Addrs) > maxServiceAddrs {
		wrong("at most %d addrs: put more instances behind a name in Consul", maxServiceAddrs)
	}
	for _, addr := range s.Addrs {
		if err := checkInstance(s.URL(addr)); err != nil {
			wrong("addr %q: %w", addr, err)
		}
	}
	switch {
	case s.Protocol != ServiceOIP && s.Protocol != ServiceOpenAI:
		wrong("protocol %q is unknown: use %q or %q", s.Protocol, ServiceOIP, ServiceOpenAI)
	case s.Protocol == ServiceOpenAI && (v.Signature != nil || !v.InputType.Text()):
		wrong("what speaks openai takes requests of OpenAI's API: use input_type \"chat\", or \"strings\", without a signature")
	case s.Protocol == ServiceOIP && v.InputType == Chat:
		wrong("what speaks oip takes tensors or a vector: use protocol = \"openai\" for chat")
	case s.Protocol == ServiceOpenAI && s.ModelVersion != "":
		wrong("model_version is for protocol = \"oip\": name the model of an engine alone")
	}
	if s.ReadyPath != "" && !strings.HasPrefix(s.ReadyPath, "/") {
		wrong("ready_path %q must begin with /", s.ReadyPath)
	}
	if s.Concurrency < 0 || s.Concurrency > maxServiceConcurrency {
		wrong("concurrency must be between 0, as many as it answers in time, and %d", maxServiceConcurrency)
	}
	if v.Session {
		wrong("session: no protocol of services carries it")
	}
	if c.Check() == nil || len(c.Env)+len(c.Watch)+len(c.Artifacts)+len(c.Secrets) > 0 || c.Protocol != "" || v.Host != nil || v.HostedBy != "" || len(v.Stages) > 0 {
		wrong("others run it: leave command, bundle, image, container_addr, protocol, env, watch, artifact, secrets, stages, host and hosted_by out")
	}
	if v.Replicas > 1 || v.Scale != nil || v.Pin != nil || v.Resources != (Resources{}) {
		wrong("Topsail does not scale it: leave replicas, scale, pin and resources out")
	}
	if b := v.Batch; b.MaxSize != 0 || b.Delay != 0 || b.Pad || b.StrategyName() != "aimd" {
		wrong("it gets queries one by one: leave batch out, and set concurrency")
	}
	return errs
}

// checkInstance says why an address names no instance, or nil.
func checkInstance(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("use host:port, http://host:port or https://host:port, with a path if the service has one")
	case u.User != nil:
		return errors.New("put the key into api_key_file, not into the address")
	}
	if _, port, err := net.SplitHostPort(u.Host); err == nil && port == "" {
		return errors.New("the port is missing")
	}
	return nil
}
