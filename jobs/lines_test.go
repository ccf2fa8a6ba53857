package jobs

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// TestLines has what one setting or field of a version changes, where the golden files have
// it only together with others, or not at all.
func TestLines(t *testing.T) {
	bundle := func(s *Spec) { s.Version.Container = serving.Container{Bundle: checksum} }
	host := func(s *Spec) {
		s.Version.InputType, s.Version.InputLength, s.Version.Host = 0, 0, &serving.HostSpec{MemoryMB: 512}
		s.Version.Container = serving.Container{Command: []string{"python3", "-m", "topsail", "host"}}
	}
	const fetchProgram = `
      artifact {
        source      = "https://models.example/topsail"
        destination = "local/topsail"
        mode        = "file"
        options {
          checksum = "` + checksum + `"
        }
      }
`
	for name, v := range map[string]struct {
		change     func(*Spec)
		has, lacks []string
	}{
		"a rollout": {
			func(s *Spec) { s.Rolling = true },
			[]string{"    max_parallel      = 1\n    canary            = 2\n    auto_promote      = true\n    auto_revert       = true\n"},
			[]string{"max_parallel = 0"},
		},
		"any GPU, on a node itself": {
			func(s *Spec) { s.Version.Resources.GPU = serving.GPU{Count: 1} },
			[]string{`"CUDA_VISIBLE_DEVICES={{ env`, "        memory = 4096\n\n        device \"nvidia/gpu\" {\n          count = 1\n        }\n"},
			[]string{"runtime ="},
		},
		"any GPU, in an image": {
			func(s *Spec) {
				s.Version.Container = serving.Container{Image: "models/wine:1.2"}
				s.Version.Resources.GPU = serving.GPU{Count: 1}
			},
			[]string{"        image = \"models/wine:1.2\"\n\n        network_mode = \"host\"\n        runtime = \"nvidia\"\n", "        memory = 4096\n"},
			[]string{"CUDA_VISIBLE_DEVICES"},
		},
		"an image": {
			func(s *Spec) {
				s.Version.Container = serving.Container{Image: "models/wine:1.2", Protocol: "v1", Port: 7000}
			},
			[]string{"        cpu    = 500\n        memory = 1024\n", "        cpu    = 200\n        memory = 128\n", "        command = \"/usr/local/bin/topsail\"\n"},
			nil,
		},
		"a bundle of management's URL": {
			func(s *Spec) {
				bundle(s)
				s.Settings.BundlesURL, s.Settings.WorkDir = "http://topsail.example:1338/", "/var/cache/topsail"
			},
			[]string{
				"        command = \"/usr/local/bin/topsail\"\n        args = [\"runtime\", \"--bundle\", \"$${NOMAD_TASK_DIR}/bundle.zip\", \"--digest\", \"" + checksum + "\", \"--work\", \"/var/cache/topsail\"]\n",
				`source      = "http://topsail.example:1338/api/v1/artifacts/` + checksum + `/content"`,
				"        memory = 300\n",
			},
			[]string{"volumes", "consul {}"},
		},
		"a bundle of another URL, with a program that is fetched": {
			func(s *Spec) {
				bundle(s)
				s.Version.Container.BundleURL, s.Settings.BundlesURL = "https://models.example/wine.zip", "http://topsail.example:1338"
				s.Settings.Program = Program{Source: "https://models.example/topsail", Checksum: checksum}
			},
			[]string{
				"        command = \"$${NOMAD_TASK_DIR}/topsail\"\n        args = [\"sidecar\"]\n",
				"        command = \"$${NOMAD_TASK_DIR}/topsail\"\n        args = [\"runtime\", \"--bundle\", \"$${NOMAD_TASK_DIR}/bundle.zip\", \"--digest\", \"" + checksum + "\"]\n",
				fetchProgram + "\n      artifact {\n        source      = \"https://models.example/wine.zip\"\n        destination = \"local/bundle.zip\"\n",
			},
			[]string{"api/v1/artifacts", "consul {}"},
		},
		"a bundle of where Consul says": {
			func(s *Spec) {
				bundle(s)
				s.Settings.TLS = TLS{CertFile: "/etc/topsail/cert.pem", KeyFile: "/etc/topsail/key.pem", CAFile: "/etc/topsail/ca.pem", ServerName: "topsail.example"}
			},
			[]string{`args = ["runtime", "--management", "$${NOMAD_TASK_DIR}/management", "--ca-file", "/etc/topsail/ca.pem", "--server-name", "topsail.example", "--digest", "` + checksum + `"]`},
			[]string{"artifact {"},
		},
		"a bundle of where Consul says, in the mesh": {
			func(s *Spec) { bundle(s); s.Settings.Mesh = true },
			[]string{`args = ["runtime", "--management", "$${NOMAD_TASK_DIR}/management", "--digest", "` + checksum + `"]`},
			nil,
		},
		"a bundle in an image, with a GPU": {
			func(s *Spec) {
				bundle(s)
				s.Version.Container.Driver, s.Version.Resources.GPU = "docker", serving.GPU{Count: 1}
				s.Settings.BundlesURL, s.Settings.RuntimeImage, s.Settings.WorkDir = "http://topsail.example:1338", "topsail-runtime:1.0", "/srv/topsail"
			},
			[]string{
				"\"--work\", \"/srv/topsail\"]\n\n        network_mode = \"host\"\n        runtime = \"nvidia\"\n\n        # What bundles need is made once for a node.\n        volumes = [\"/srv/topsail:/srv/topsail\"]\n",
				"        memory = 4096\n",
			},
			[]string{"mount {"},
		},
		"a host whose bundles are at a URL": {
			func(s *Spec) { host(s); s.Settings.BundlesURL = "http://topsail.example:1338" },
			[]string{
				`"TOPSAIL_SIDECAR_BUNDLES_URL" = "http://topsail.example:1338"`,
				"      size = 2860\n", "        memory = 640\n",
				"        command = \"python3\"\n        args = [\"-m\", \"topsail\", \"host\"]\n",
			},
			[]string{"TOPSAIL_SIDECAR_MANAGEMENT_FILE", "consul {}", "TOPSAIL_INPUT"},
		},
		"a host with a command, of where Consul says": {
			host, []string{`"TOPSAIL_SIDECAR_MANAGEMENT_FILE" = "$${NOMAD_TASK_DIR}/management"`}, []string{"TOPSAIL_SIDECAR_BUNDLES_URL"},
		},
		"a container that runs by itself": {
			func(s *Spec) { s.Version.Container = serving.Container{Addr: "127.0.0.1:7000", Protocol: "v1"} },
			[]string{`protocol = "2"`}, []string{`task "container"`, "lifecycle {", `port "v1"`},
		},
		"certificates": {
			func(s *Spec) { s.Settings.TLS = TLS{CertFile: "/cert.pem", KeyFile: "/key.pem", CAFile: "/ca.pem"} },
			[]string{`"TOPSAIL_TLS_CERT_FILE" = "/cert.pem"`, `"TOPSAIL_TLS_KEY_FILE" = "/key.pem"`, `"TOPSAIL_TLS_CA_FILE" = "/ca.pem"`},
			[]string{"TOPSAIL_SIDECAR_TOKEN_FILE"},
		},
	} {
		text := render1(t, v.change)
		for _, part := range v.has {
			if !strings.Contains(text, part) {
				t.Errorf("%s: there is no\n%s\nin\n%s", name, part, text)
			}
		}
		for _, part := range v.lacks {
			if strings.Contains(text, part) {
				t.Errorf("%s: there is\n%s\nin\n%s", name, part, text)
			}
		}
	}
}

// TestWhoKnowsManagement: the tasks that fetch bundles from where Consul says, and no others.
func TestWhoKnowsManagement(t *testing.T) {
	for name, v := range map[string]struct {
		change             func(*Spec)
		sidecar, container bool
	}{
		"a bundle": {func(s *Spec) { s.Version.Container = serving.Container{Bundle: checksum} }, false, true},
		"a host":   {func(s *Spec) { s.Version.Host = &serving.HostSpec{MemoryMB: 512} }, true, false},
		"a host in a bundle": {func(s *Spec) {
			s.Version.Host, s.Version.Container = &serving.HostSpec{MemoryMB: 512}, serving.Container{Bundle: checksum}
		}, true, true},
		"a command": {func(*Spec) {}, false, false},
	} {
		sidecar, container, _ := strings.Cut(render1(t, v.change), `task "container"`)
		if strings.Contains(sidecar, "consul {}") != v.sidecar || strings.Contains(container, "consul {}") != v.container {
			t.Errorf("%s: another task is told, in\n%s\n%s", name, sidecar, container)
		}
	}
}
