package serving

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

func goodService() Version {
	return Version{ModelID: ModelID{Model: "resnet", Version: "1"}, InputType: Doubles, Replicas: 1, Service: &ServiceSpec{Name: "triton", Protocol: ServiceOIP}}
}

func TestServiceCheck(t *testing.T) {
	for want, spoil := range map[string]func(*Version, *ServiceSpec){
		"either its name in Consul or addrs":       func(_ *Version, s *ServiceSpec) { s.Name = "" },
		"give either its name":                     func(_ *Version, s *ServiceSpec) { s.Addrs = []string{"a:1"} },
		"at most 64 addrs":                         func(_ *Version, s *ServiceSpec) { s.Name, s.Addrs = "", make([]string, 65) },
		"addr \"ftp://a\": use host:port":          func(_ *Version, s *ServiceSpec) { s.Name, s.Addrs = "", []string{"ftp://a"} },
		"addr \"a:\": the port is missing":         func(_ *Version, s *ServiceSpec) { s.Name, s.Addrs = "", []string{"a:"} },
		"addr \"http://a?b\": use host:port":       func(_ *Version, s *ServiceSpec) { s.Name, s.Addrs = "", []string{"http://a?b"} },
		"put the key into api_key_file":            func(_ *Version, s *ServiceSpec) { s.Name, s.Addrs = "", []string{"http://u:p@a"} },
		"protocol \"grpc\" is unknown":             func(_ *Version, s *ServiceSpec) { s.Protocol = "grpc" },
		"use input_type \"chat\", or \"strings\"":  func(_ *Version, s *ServiceSpec) { s.Protocol = ServiceOpenAI },
		"use protocol = \"openai\" for chat":       func(v *Version, _ *ServiceSpec) { v.InputType = Chat },
		"model_version is for protocol = \"oip\"":  func(v *Version, s *ServiceSpec) { v.InputType, s.Protocol, s.ModelVersion = Chat, ServiceOpenAI, "2" },
		"ready_path \"ready\" must begin with /":   func(_ *Version, s *ServiceSpec) { s.ReadyPath = "ready" },
		"concurrency must be between 0":            func(_ *Version, s *ServiceSpec) { s.Concurrency = -1 },
		"no protocol of services carries it":       func(v *Version, _ *ServiceSpec) { v.Session = true },
		"others run it: leave command":             func(v *Version, _ *ServiceSpec) { v.Command = []string{"x"} },
		"image, container_addr, protocol, env":     func(v *Version, _ *ServiceSpec) { v.Env = map[string]string{"A": "b"} },
		"stages, host and hosted_by out":           func(v *Version, _ *ServiceSpec) { v.HostedBy = "small" },
		"leave replicas, scale, pin and resources": func(v *Version, _ *ServiceSpec) { v.Replicas = 2 },
		"leave batch out":                          func(v *Version, _ *ServiceSpec) { v.Batch.MaxSize = 4 },
	} {
		v := goodService()
		require.NoError(t, v.Check())
		spoil(&v, v.Service)
		if err := v.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestAddressesOfInstances(t *testing.T) {
	v := goodService()
	v.Service.Name, v.Service.Addrs = "", []string{"10.0.0.1:8000", "https://a.example/api/", "[::1]:80", "a.example"}
	require.NoError(t, v.Check())
	for i, want := range []string{"http://10.0.0.1:8000", "https://a.example/api", "http://[::1]:80", "http://a.example"} {
		if got := v.Service.URL(v.Service.Addrs[i]); got != want {
			t.Errorf("%q is at %q, not %q", v.Service.Addrs[i], got, want)
		}
	}
	hosted, service := goodGuest(), goodService()
	if plain := goodVersion(); !plain.OwnReplicas() || hosted.OwnReplicas() || service.OwnReplicas() {
		t.Error("replicas of their own are others'")
	}
}

func TestReadyPaths(t *testing.T) {
	for want, change := range map[string]func(*ServiceSpec){
		"/v2/models/resnet/ready":               func(*ServiceSpec) {},
		"/v2/models/a%20b%2Fc/versions/2/ready": func(s *ServiceSpec) { s.Model, s.ModelVersion = "a b/c", "2" },
		"/ok":                                   func(s *ServiceSpec) { s.ReadyPath = "/ok" },
		"/health":                               func(s *ServiceSpec) { s.Protocol = ServiceOpenAI },
	} {
		v := goodService()
		change(v.Service)
		if got := v.ReadyPath(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
