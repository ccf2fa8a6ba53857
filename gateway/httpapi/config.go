package httpapi

import (
	"cmp"
	"time"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/obs"
)

// Config bounds what clients can ask of a Server. A bound that is zero takes the
// default that stands beside it, except for DrainTimeout.
type Config struct {
	MaxBodyBytes   int           // of a request, before and after inflating; 16 MiB
	MaxBatch       int           // inputs, or pieces of feedback, in one request; 4096
	MaxConnections int           // open at a time, idle ones included; 4096
	MaxPerAddress  int           // of these from one address; 0: any number
	ReadTimeout    time.Duration // for a whole request to arrive; 10 s
	WriteTimeout   time.Duration // for an answer to leave; 10 s
	IdleTimeout    time.Duration // between two requests of a connection; 60 s
	DrainTimeout   time.Duration // for queries in flight when stopping; 0 cancels them at once
	Keys           *access.Keys  // one of which, or of the catalog's, a request must show; nil: there are none
	RequireKeys    bool          // a request must show a key, also where there are no Keys: one of the catalog's

	Budget *budget.Budget // of the bytes of requests and answers under way; nil: one of 256 MiB for this server

	Hosts          access.Hosts // by which it may be called without keys, in addition to loopback; nil: any name
	AllowedOrigins []string     // of pages of other sites that may ask, such as https://shop.example

	Metrics *obs.Registry            // nil: metrics are kept and shown nowhere
	Inspect func(page []byte) []byte // appends Clipper's metrics page; nil: there is no GET /metrics
}

func (c Config) withDefaults() Config {
	c.MaxBodyBytes = cmp.Or(c.MaxBodyBytes, 16<<20)
	c.MaxBatch = cmp.Or(c.MaxBatch, 4096)
	c.MaxConnections = cmp.Or(c.MaxConnections, 4096)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 10*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	if c.Budget == nil {
		c.Budget = budget.New(256 << 20)
	}
	if c.Metrics == nil {
		c.Metrics = obs.NewRegistry()
	}
	return c
}
