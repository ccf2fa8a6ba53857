package jobs

import (
	"strconv"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// portLabel is the port of a replica on which its version 1 container listens.
const portLabel = "v1"

// portOf is the port that a container listens on, as Nomad fills it in.
func portOf(c serving.Container) string {
	if c.Port != 0 {
		return strconv.Itoa(c.Port)
	}
	return "${NOMAD_PORT_" + portLabel + "}"
}

// addrOf is where the sidecar finds it. The port of an image that knows but one is mapped,
// for each replica to another one of the node's.
func addrOf(c serving.Container) string {
	if c.Port != 0 {
		return "${NOMAD_ADDR_" + portLabel + "}"
	}
	return "127.0.0.1:" + portOf(c)
}

// mapPort gives a task of docker a network of its own, of which that one port is mapped; others are in the node's.
func mapPort(t *api.Task) {
	delete(t.Config, "network_mode")
	t.Config["ports"] = []string{portLabel}
}
