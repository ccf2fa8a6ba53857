//go:build servers

package nomad

import (
	"maps"
	"strings"
	"testing"

	nomadapi "github.com/hashicorp/nomad/api"

	"go.yaml.in/yaml/v3"

	"github.com/topsail-serving/topsail/test/require"
)

// variants are the ways to run each role. All must be valid and without warnings;
// those that the test's node can run must also find room there.
var variants = []struct {
	role, name string
	runs       bool
	vars       variables
}{
	{"gateway", "defaults", true, nil},
	{"gateway", "several on a node", true, variables{"count": 3, "port": 0, "per_node": 3}},
	{"gateway", "any number on a node", true, variables{"count": 2, "port": 0, "per_node": 0}},
	{"gateway", "one on every node", true, variables{"type": "system", "count": 3}},
	{"gateway", "downloaded", true, variables{"program": "https://models.example/topsail-1.2.tar.gz", "checksum": "sha256:" + strings.Repeat("0", 64)}},
	{"gateway", "downloaded without checksum", true, variables{"program": "https://models.example/topsail"}},
	{"gateway", "exec", false, variables{"driver": "exec"}},
	{"gateway", "docker", false, variables{"driver": "docker", "image": "registry.example/topsail:1.2", "type": "system"}},
	{"gateway", "Traefik", true, variables{"traefik_rule": "Host(`predict.example`) && PathPrefix(`/`)"}},
	{"gateway", "fabio", true, variables{"fabio_route": "predict.example/"}},
	{"gateway", "closed", true, closed},
	{"gateway", "Consul's identity", true, variables{"consul_identity": true}},
	{"gateway", "listed by Nomad", true, variables{"service_provider": "nomad"}},
	{"gateway", "settings", true, variables{"env": map[string]string{"TOPSAIL_LOG_LEVEL": "debug", "TOPSAIL_TLS_EXTERNAL": "true"}, "ops_port": 1390}},

	{"scheduler", "defaults", false, nil}, // two nodes
	{"scheduler", "one", true, variables{"count": 1}},
	{"scheduler", "downloaded", true, variables{"count": 1, "program": "https://models.example/topsail", "checksum": "sha256:" + strings.Repeat("0", 64)}},
	{"scheduler", "docker", false, variables{"driver": "docker", "image": "registry.example/topsail:1.2"}},
	{"scheduler", "identities", true, variables{"count": 1, "consul_identity": true, "nomad_addr": "unix://${NOMAD_SECRETS_DIR}/api.sock"}},
	{"scheduler", "token files", true, variables{"count": 1, "consul_token_file": "/etc/topsail/consul", "nomad_token_file": "/etc/topsail/nomad"}},
	{"scheduler", "closed", true, with(without(closed, "keys_file"), variables{"per_node": 2})},

	{"web", "defaults", false, nil}, // two nodes
	{"web", "one", true, variables{"count": 1}},
	{"web", "several on a node", true, variables{"port": 0, "per_node": 2, "bundles": "s3://models?endpoint=https://minio.example:9000", "secrets": []string{"s3"}, "credentials_name": "s3"}},
	{"web", "docker", false, variables{"driver": "docker", "image": "registry.example/topsail:1.2"}},
	{"web", "identities", true, variables{"count": 1, "consul_identity": true, "nomad_addr": "unix://${NOMAD_SECRETS_DIR}/api.sock"}},
	{"web", "closed", true, with(without(closed, "sidecar_token_file"), variables{"count": 1})},
	{"web", "tags", true, variables{"count": 1, "tags": []string{"traefik.enable=true"}}},

	{"stream", "defaults", true, nil},
	{"stream", "several", true, variables{"count": 3, "config": "[[stream]]\nname = \"wine\"\npassword_file = \"{{ env \"NOMAD_SECRETS_DIR\" }}/kafka\"\n"}},
	{"stream", "a file on the nodes", true, variables{"config_file": "/etc/topsail/streams.toml"}},
	{"stream", "docker", false, variables{"driver": "docker", "image": "registry.example/topsail:1.2"}},
	{"stream", "downloaded", true, variables{"program": "https://models.example/topsail", "checksum": "sha256:" + strings.Repeat("0", 64)}},
	{"stream", "identity", true, variables{"consul_identity": true}},
	{"stream", "closed", true, without(closed, "keys_file")},

	{"backup", "a folder", true, variables{"destination": "/mnt/backups"}},
	{"backup", "a bucket", true, variables{"destination": "s3://ops/topsail?endpoint=https://minio.example", "secrets": []string{"key", "s3"}, "key_name": "key", "credentials_name": "s3", "without_bundles": true}},
	{"backup", "docker with a volume", false, variables{"driver": "docker", "image": "registry.example/topsail:1.2", "host_volume": "backups", "destination": "/backups"}},
	{"backup", "downloaded", true, variables{"destination": "/mnt/backups", "program": "https://models.example/topsail", "checksum": "sha256:" + strings.Repeat("0", 64)}},
	{"backup", "listed by Nomad", true, variables{"destination": "/mnt/backups", "service_provider": "nomad", "ca_file": "/etc/topsail/ca.pem"}},

	{"redis", "defaults", true, nil},
	{"redis", "docker with a volume", false, variables{"driver": "docker", "host_volume": "redis", "data_dir": "/data"}},
	{"redis", "configured", true, variables{"config_file": "/etc/redis/topsail.conf", "data_dir": "/var/lib/redis"}},

	{"influxdb", "defaults", true, nil},
	{"influxdb", "docker with a volume", false, variables{"driver": "docker", "host_volume": "influxdb", "data_dir": "/var/lib/influxdb"}},
	{"prometheus", "defaults", true, nil},
	{"prometheus", "alarms, and closed", true, variables{"rules": "groups: [{name: t, rules: [{alert: A, expr: up == 0, annotations: {summary: '{{ $labels.role }}'}}]}]", "access": "scheme: https\ntls_config: {ca_file: /etc/topsail/ca.pem}"}},
	{"prometheus", "docker with a volume", false, variables{"driver": "docker", "host_volume": "prometheus", "data_dir": "/prometheus"}},

	{"grafana", "of InfluxDB", false, variables{"dashboard": `{"title": "{{app}}"}`, "influxdb_url": "http://127.0.0.1:8086", "influxdb_token": "$__file{/secrets/influx.token}"}},
	{"grafana", "docker", false, variables{"dashboard": `{"title": "{{app}}"}`}},
	{"grafana", "on the nodes", true, variables{"driver": "raw_exec", "dashboard": `{"title": "{{app}}"}`, "env": map[string]string{"GF_AUTH_ANONYMOUS_ENABLED": "false"}}},

	{"influxdb", "own database", true, variables{"database": "ours", "env": map[string]string{"INFLUXDB_HTTP_AUTH_ENABLED": "true"}}},
}

// closed is what a role needs on addresses that other machines can reach.
var closed = variables{
	"cert_file": "/etc/topsail/cert.pem", "key_file": "/etc/topsail/key.pem", "ca_file": "/etc/topsail/ca.pem",
	"keys_file":          "${NOMAD_SECRETS_DIR}/keys",
	"ops_keys_file":      "${NOMAD_SECRETS_DIR}/ops_keys",
	"sidecar_token_file": "${NOMAD_SECRETS_DIR}/sidecar_token",
	"secrets":            []string{"keys", "ops_keys", "sidecar_token"},
}

func without(v variables, name string) variables {
	less := variables{}
	for key, value := range v {
		if key != name {
			less[key] = value
		}
	}
	return less
}

func TestJobs(t *testing.T) {
	c := shared
	jobs := c.root.Jobs()
	for _, v := range variants {
		t.Run(v.role+"/"+v.name, func(t *testing.T) {
			t.Parallel()
			v.vars = with(v.vars, variables{"namespace": namespace})
			job, err := c.parse(t, v.role, v.vars)
			require.NoError(t, err)
			if want := "topsail-" + v.role; *job.ID != want {
				t.Errorf("the id is %q, want %q", *job.ID, want)
			}
			if got := job.TaskGroups[0].Tasks[0].KillSignal; got != "SIGTERM" {
				t.Errorf("it is told to stop by %q", got)
			}
			for _, template := range job.TaskGroups[0].Tasks[0].Templates {
				if text := *template.EmbeddedTmpl; strings.HasSuffix(*template.DestPath, ".yml") {
					if err := yaml.Unmarshal([]byte(text), &map[string]any{}); err != nil {
						t.Errorf("%s: %v\n%s", *template.DestPath, err, text)
					}
				}
			}
			said, _, err := jobs.Validate(job, nil)
			if err != nil || said.Error != "" || said.Warnings != "" {
				t.Fatalf("validate: %v %+v", err, said)
			}
			plan, _, err := jobs.Plan(job, false, nil)
			if err != nil || plan.Warnings != "" {
				t.Fatalf("plan: %v %+v", err, plan)
			}
			if v.runs && len(plan.FailedTGAllocs) > 0 {
				t.Errorf("it finds no room: %+v", plan.FailedTGAllocs)
			}
		})
	}
}

// with is v with what is in more over it.
func with(v, more variables) variables {
	all := variables{}
	for _, part := range []variables{v, more} {
		maps.Copy(all, part)
	}
	return all
}

// TestGatewayIsRouted holds the tags to what Traefik and fabio read.
func TestGatewayIsRouted(t *testing.T) {
	c := shared
	job, err := c.parse(t, "gateway", variables{"traefik_rule": "PathPrefix(`/`)", "fabio_route": "predict.example/", "cert_file": "/cert"})
	require.NoError(t, err)
	want := []string{
		"traefik.enable=true", "traefik.http.routers.topsail.rule=PathPrefix(`/`)",
		"traefik.http.services.topsail.loadbalancer.server.scheme=https", "urlprefix-predict.example/ proto=https",
	}
	if got := service(job).Tags; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("tags are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func service(job *nomadapi.Job) *nomadapi.Service { return job.TaskGroups[0].Services[0] }

func TestWrongTypeIsRefused(t *testing.T) {
	c := shared
	if _, err := c.parse(t, "gateway", variables{"type": "batch"}); err == nil || !strings.Contains(err.Error(), "The type is service or system.") {
		t.Errorf("a batch of gateways is answered by %v", err)
	}
}

// TestSpread: what keeps a cluster going prefers several nodes, and of what must not go down
// with one node, that has one.
func TestSpread(t *testing.T) {
	c := shared
	for role, vars := range map[string]variables{"gateway": {"count": 2}, "scheduler": nil, "web": nil, "stream": nil} {
		job, err := c.parse(t, role, vars)
		require.NoError(t, err)
		spreads := job.TaskGroups[0].Spreads
		if len(spreads) != 1 || spreads[0].Attribute != "${node.unique.id}" {
			t.Errorf("%s: %+v", role, spreads)
		}
		bounds := job.TaskGroups[0].Constraints
		if role == "stream" { // more processes do more, also on one node
			if len(bounds) > 0 {
				t.Errorf("%s: %+v", role, bounds[0])
			}
		} else if len(bounds) != 1 || *bounds[0] != (nomadapi.Constraint{LTarget: "${node.unique.id}", Operand: "distinct_property", RTarget: "1"}) {
			t.Errorf("%s: %+v", role, bounds)
		}
	}
	for name, vars := range map[string]variables{"one on every node": {"type": "system"}, "any number": {"count": 3, "per_node": 0}} {
		job, err := c.parse(t, "gateway", vars)
		if err != nil || len(job.TaskGroups[0].Constraints) > 0 || (vars["type"] == "system") != (len(job.TaskGroups[0].Spreads) == 0) {
			t.Errorf("%s: %+v, error %v", name, job, err)
		}
	}
}
