package servers

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// NomadOptions are what the agents of one Nomad share.
type NomadOptions struct {
	Consul      string // host:port of Consul's API; empty: none
	ConsulToken string
	ACL         bool
	Identities  bool // tasks and services get tokens of Consul for theirs, once it trusts Nomad

	// HeartbeatGrace is how late a client may be before its node counts as down. The
	// default of 30 s bears a machine that stands still.
	HeartbeatGrace time.Duration
}

func (o NomadOptions) heartbeatGrace() time.Duration {
	if o.HeartbeatGrace == 0 {
		return 30 * time.Second
	}
	return o.HeartbeatGrace
}

// NomadServer is a single-server Nomad that keeps its data in dir. It takes three
// ports from port on; the first is its API's.
func NomadServer(dir string, port int, opt NomadOptions) (*Server, error) {
	body := fmt.Sprintf(`
server {
  enabled          = true
  bootstrap_expect = 1
  raft_multiplier  = 1
  heartbeat_grace  = "%s"
  min_heartbeat_ttl = "2s"
  failover_heartbeat_ttl = "10s"
}
`, opt.heartbeatGrace())
	s, err := nomadAgent("nomad-server", dir, port, opt, body)
	if err != nil {
		return nil, err
	}
	s.ready = answers("/v1/status/leader", ":")
	return s, nil
}

// NomadClient is a Nomad client of the server whose API is at server. It takes two
// ports from port on, and the 200 dynamic ports from dynamic on for its tasks.
func NomadClient(name, dir string, port, dynamic, server int, opt NomadOptions) (*Server, error) {
	body := fmt.Sprintf(`
plugin "raw_exec" {
  config {
    enabled = true
  }
}
client {
  enabled           = true
  servers           = ["127.0.0.1:%d"]
  network_interface = "lo"
  min_dynamic_port  = %d
  max_dynamic_port  = %d
  memory_total_mb   = 16384
  cpu_total_compute = 64000
  max_kill_timeout  = "30s"

  # Tests read the logs of what has ended; a disk that is rather full would take them at once.
  gc_disk_usage_threshold  = 99
  gc_inode_usage_threshold = 99

  options {
    "driver.allowlist"     = "raw_exec,docker,exec"
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean"
  }
}
`, server+1, dynamic, dynamic+199)
	s, err := nomadAgent(name, dir, port, opt, body)
	if err != nil {
		return nil, err
	}
	s.ready = nodeReady(filepath.Join(dir, "data", "client"))
	s.Grace = 20 * time.Second
	return s, nil
}

// nodeReady is a readiness check of a client that keeps its state in a folder: its server places tasks on
// its node. The client calls itself healthy before, up to 10 s when it is slow to register. The check has
// the node's own secret, which may read the node whatever ACLs there are.
func nodeReady(state string) func(ctx context.Context, addr string) error {
	return func(ctx context.Context, addr string) error {
		id, err := os.ReadFile(filepath.Join(state, "client-id"))
		if err != nil {
			return err
		}
		secret, err := os.ReadFile(filepath.Join(state, "secret-id"))
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/v1/node/"+string(id), nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Nomad-Token", string(secret))
		return check(req, `"Status":"ready"`)
	}
}

// identities are those that nomad/agent has for Consul.
func identities(wanted bool) string {
	if !wanted {
		return ""
	}
	const of = "_identity {\n    aud = [\"consul.io\"]\n    ttl = \"1h\"\n  }\n"
	return "  service" + of + "  task" + of
}

func nomadAgent(name, dir string, port int, opt NomadOptions, body string) (*Server, error) {
	path, err := Binary("nomad")
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`
name      = %q
data_dir  = %q
bind_addr = "127.0.0.1"
log_level = "warn"
disable_update_check = true
ports {
  http = %d
  rpc  = %d
  serf = %d
}
advertise {
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}
limits {
  http_max_conns_per_client = 500
}
acl {
  enabled = %t
}
`, name, filepath.Join(dir, "data"), port, port+1, port+2, opt.ACL)
	if opt.Consul == "" {
		config += "consul {\n  auto_advertise = false\n  server_auto_join = false\n  client_auto_join = false\n}\n"
	} else {
		config += fmt.Sprintf("consul {\n  address = %q\n  token = %q\n%s}\n", opt.Consul, opt.ConsulToken, identities(opt.Identities))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, name+".hcl")
	if err := os.WriteFile(file, []byte(config+body), 0o600); err != nil {
		return nil, err
	}
	return &Server{
		Name: name, Addr: address(port), argv: []string{path, "agent", "-config", file},
		log: filepath.Join(dir, name+".log"),
	}, nil
}
