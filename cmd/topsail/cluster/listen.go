package cluster

import (
	"fmt"
	"net"
	"os"
)

// listen takes an address, or says which setting to change.
func listen(setting, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; stop what uses it, or set another address", setting, err)
	}
	return ln, nil
}

// nameOr is the name of this process among its peers: the one that was set, the
// allocation's, or the host's with the process id.
func nameOr(set string) string {
	if set != "" {
		return set
	}
	if alloc := os.Getenv("NOMAD_ALLOC_ID"); alloc != "" {
		return alloc
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
