package grpcapi

import (
	"cmp"
	"time"

	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/obs"
)

// Config bounds what clients can ask of a Server. A bound that is zero takes the default that stands
// beside it, except for DrainTimeout.
type Config struct {
	MaxMessageBytes int           // of a request; 16 MiB
	MaxBatch        int           // rows in one request; 4096
	MaxConnections  int           // open at a time; 4096
	MaxCalls        int           // of one connection at a time; 1024
	MaxReceiving    int           // calls whose message has not arrived, of all connections; 1024
	ReceiveTimeout  time.Duration // for a call's first message to arrive; 10 s
	DrainTimeout    time.Duration // for calls in flight when stopping; 0 cancels them at once

	Budget  *budget.Budget // of the bytes of requests and answers under way; nil: one of 256 MiB for this server
	Metrics *obs.Registry  // nil: metrics are kept and shown nowhere
}

func (c Config) withDefaults() Config {
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, 16<<20)
	c.MaxBatch = cmp.Or(c.MaxBatch, 4096)
	c.MaxConnections = cmp.Or(c.MaxConnections, 4096)
	c.MaxCalls = cmp.Or(c.MaxCalls, 1024)
	c.MaxReceiving = cmp.Or(c.MaxReceiving, 1024)
	c.ReceiveTimeout = cmp.Or(c.ReceiveTimeout, 10*time.Second)
	if c.Budget == nil {
		c.Budget = budget.New(256 << 20)
	}
	if c.Metrics == nil {
		c.Metrics = obs.NewRegistry()
	}
	return c
}
