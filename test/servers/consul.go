package servers

import (
	"fmt"
	"os"
	"path/filepath"
)

// ConsulOptions change what Consul makes.
type ConsulOptions struct {
	ACL    string // when set: access control is on, and this is the management token
	Server int    // port of the server that a client joins; 0: this is the server
}

// Consul is a single-server Consul that keeps its data in dir, or a client of one.
// It takes three ports from port on; the first is its API's.
func Consul(name, dir string, port int, opt ConsulOptions) (*Server, error) {
	path, err := Binary("consul")
	if err != nil {
		return nil, err
	}
	role := "server           = true\nbootstrap_expect = 1\n"
	if opt.Server != 0 {
		role = fmt.Sprintf("server     = false\nretry_join = [%q]\nretry_interval = \"1s\"\n", address(opt.Server+1))
	}
	config := role + fmt.Sprintf(`
node_name   = %q
data_dir    = %q
bind_addr   = "127.0.0.1"
client_addr = "127.0.0.1"
log_level   = "warn"
disable_update_check = true
disable_host_node_id = true
leave_on_terminate   = false
ports {
  http     = %d
  grpc     = -1
  grpc_tls = -1
  dns      = -1
  serf_lan = %d
  serf_wan = -1
  server   = %d
}
performance {
  raft_multiplier = 1
}
`, name, filepath.Join(dir, "data"), port, port+1, port+2)
	if opt.ACL != "" {
		config += fmt.Sprintf(`
acl {
  enabled        = true
  default_policy = "deny"
  tokens {
    initial_management = %q
    agent              = %q
  }
}
`, opt.ACL, opt.ACL)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "consul.hcl")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return &Server{
		Name: name, Addr: address(port), argv: []string{path, "agent", "-config-file", file},
		log: filepath.Join(dir, "consul.log"), ready: answers("/v1/status/leader", ":"),
	}, nil
}
