// Package k8s stands in for the lookup of servers in Kubernetes.
package k8s

import (
	"log"

	"github.com/hashicorp/go-discover"
)

type Provider struct{ discover.Discover }

func (*Provider) Addrs(_ map[string]string, l *log.Logger) ([]string, error) {
	return (*discover.Discover)(nil).Addrs("", l)
}

func (*Provider) Help() string { return "" }
