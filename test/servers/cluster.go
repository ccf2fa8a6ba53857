package servers

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Ports are where the servers of a cluster listen.
type Ports struct {
	Redis, Consul, InfluxDB int // Consul's agents beside Nomad's clients take the ones after it, ten apart
	Nomad                   int // of the server; its clients take the ones after it, ten apart
	Tasks                   int // the first of the ports that clients give to tasks, 200 for each
}

// FreePortsForAll are ports for a cluster beside others.
func FreePortsForAll() (Ports, error) {
	first, err := FreePorts(700)
	return Ports{Redis: first, InfluxDB: first + 5, Consul: first + 10, Nomad: first + 60, Tasks: first + 100}, err
}

// Options say what is in a cluster.
type Options struct {
	Dir     string
	Ports   Ports
	Clients int    // of Nomad
	ACL     string // when set: Consul and Nomad control access, and this is Consul's management token; jobs have identities

	HeartbeatGrace time.Duration // see NomadOptions
}

// Cluster is a Redis, a Consul, an InfluxDB, and a Nomad with its clients.
type Cluster struct {
	Redis, Consul, InfluxDB, Nomad *Server
	Clients                        []*Server // of Nomad
	Agents                         []*Server // of Consul, beside each: a Nomad client takes services that it does not know away from its agent
}

// NewCluster prepares a cluster; Start starts it.
func NewCluster(opt Options) (*Cluster, error) {
	c, p := &Cluster{}, opt.Ports
	var err error
	if c.Redis, err = Redis(filepath.Join(opt.Dir, "redis"), p.Redis); err != nil {
		return nil, err
	}
	if c.Consul, err = Consul("consul", filepath.Join(opt.Dir, "consul"), p.Consul, ConsulOptions{ACL: opt.ACL}); err != nil {
		return nil, err
	}
	if c.InfluxDB, err = InfluxDB(filepath.Join(opt.Dir, "influxdb"), p.InfluxDB); err != nil {
		return nil, err
	}
	nomad := NomadOptions{Consul: c.Consul.Addr, ConsulToken: opt.ACL, ACL: opt.ACL != "", Identities: opt.ACL != "", HeartbeatGrace: opt.HeartbeatGrace}
	if c.Nomad, err = NomadServer(filepath.Join(opt.Dir, "nomad"), p.Nomad, nomad); err != nil {
		return nil, err
	}
	for i := range opt.Clients {
		agent, err := Consul(fmt.Sprintf("consul-client-%d", i+1), filepath.Join(opt.Dir, fmt.Sprintf("consul-client-%d", i+1)), p.Consul+10*(i+1), ConsulOptions{ACL: opt.ACL, Server: p.Consul})
		if err != nil {
			return nil, err
		}
		c.Agents = append(c.Agents, agent)
		nomad.Consul = agent.Addr
		name := fmt.Sprintf("nomad-client-%d", i+1)
		client, err := NomadClient(name, filepath.Join(opt.Dir, name), p.Nomad+10*(i+1), p.Tasks+200*i, p.Nomad, nomad)
		if err != nil {
			return nil, err
		}
		c.Clients = append(c.Clients, client)
	}
	return c, nil
}

// All lists the servers, each after those that it needs.
func (c *Cluster) All() []*Server {
	return slices.Concat([]*Server{c.Redis, c.Consul, c.InfluxDB, c.Nomad}, c.Agents, c.Clients)
}

// Start starts everything and waits until it is ready. What could be started is
// left for Stop when something could not.
func (c *Cluster) Start(ctx context.Context) error {
	group, first := errgroup.WithContext(ctx)
	for _, s := range []*Server{c.Redis, c.Consul, c.InfluxDB} {
		group.Go(func() error { return s.Start(first) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := c.Nomad.Start(ctx); err != nil {
		return err
	}
	for _, tier := range [][]*Server{c.Agents, c.Clients} {
		group, starting := errgroup.WithContext(ctx)
		for _, s := range tier {
			group.Go(func() error { return s.Start(starting) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops everything, the last started first. Tasks of Nomad live on without
// their clients: stop their jobs before.
func (c *Cluster) Stop() {
	for _, s := range slices.Backward(c.All()) {
		s.Stop()
	}
}
