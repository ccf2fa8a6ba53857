package role

import (
	"fmt"
	"os"
)

// Name is the name of this process among its peers: the one that was set, the
// allocation's, or the host's with the process id.
func Name(set string) string {
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
