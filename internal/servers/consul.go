package servers

import (
	"fmt"
	"os"
	"path/filepath"
)

// ConsulOptions change the Consul that Consul makes.
type ConsulOptions struct {
	ACL string // when set: access control is on, and this is the management token
}

// Consul is a single-server Consul that keeps its data in dir. It takes five ports
// from port on; the first is its API's.
func Consul(dir string, port int, opt ConsulOptions) (*Server, error) {
	path, err := Binary("consul")
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`
server           = true
bootstrap_expect = 1
data_dir         = %q
bind_addr        = "127.0.0.1"
client_addr      = "127.0.0.1"
log_level        = "warn"
disable_update_check = true
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
`, filepath.Join(dir, "data"), port, port+1, port+2)
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
		Name: "consul", Addr: address(port), argv: []string{path, "agent", "-config-file", file},
		log: filepath.Join(dir, "consul.log"), ready: answers("/v1/status/leader", ":"),
	}, nil
}
