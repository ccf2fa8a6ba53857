package serving

import (
	"maps"
	"slices"
	"strings"
)

// PortVariable is the variable that tells a container of version 1 on which port to listen.
const PortVariable = "PORT"

// Listens says whether the container is started, and then listens on a port of its replica's.
func (c Container) Listens() bool { return c.Protocol == "v1" && c.Addr == "" }

// WithPort is c as a replica starts it that has the port: PORT has it, and ${PORT} in the
// command and in variables stands for it.
func (c Container) WithPort(port string) Container {
	fill := strings.NewReplacer("${"+PortVariable+"}", port)
	c.Command, c.Env = slices.Clone(c.Command), maps.Clone(c.Env)
	for i, argument := range c.Command {
		c.Command[i] = fill.Replace(argument)
	}
	if c.Env == nil {
		c.Env = map[string]string{}
	}
	for name, value := range c.Env {
		c.Env[name] = fill.Replace(value)
	}
	c.Env[PortVariable] = port
	return c
}
