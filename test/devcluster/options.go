package main

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/topsail-serving/topsail/test/servers"
)

// options say where the cluster is.
type options struct {
	dir     string
	program string
	config  string
	offset  int
}

// absolute makes the paths mean the same on every Nomad client.
func (o *options) absolute() (err error) {
	for _, path := range []*string{&o.dir, &o.program, &o.config} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

// The default ports, before the offset is added.
const (
	gatewayPort = 1337
	webPort     = 1338
)

func (o options) ports() servers.Ports {
	return servers.Ports{
		Redis: 6379 + o.offset, Consul: 8500 + o.offset, InfluxDB: 8086 + o.offset,
		Nomad: 4646 + o.offset, Tasks: 20000 + o.offset,
	}
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }

func (o options) gateway() string { return address(gatewayPort + o.offset) }

func (o options) web() string { return address(webPort + o.offset) }

// environment tells topsail and nomad commands where the servers are.
func (o options) environment() []string {
	p := o.ports()
	return []string{
		"CONSUL_HTTP_ADDR=" + address(p.Consul),
		"NOMAD_ADDR=http://" + address(p.Nomad),
		"TOPSAIL_REDIS_ADDRS=" + address(p.Redis),
		"TOPSAIL_INFLUXDB_URL=http://" + address(p.InfluxDB),
	}
}
