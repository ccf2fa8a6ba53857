package load

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

const (
	maxRate        = 1e6
	maxConnections = 4096
	maxTime        = time.Hour
)

// Config is one run.
type Config struct {
	URL         string             // http only
	Body        func(i int) []byte // of the i-th arrival; called from many goroutines, see Cycle
	Rate        float64            // arrivals per second
	Duration    time.Duration      // of the arrivals; the last answers may come later
	Uniform     bool               // arrivals at even distances instead of a Poisson process
	Seed        uint64             // of the Poisson process
	Connections int                // bounds the requests in flight; 0 means 64
	Timeout     time.Duration      // of a request, from when it is due; 0 means 10 s
	Seen        func(reply []byte) // gets the body of each reply, which is only lent; called from many goroutines; nil: it is not looked at
}

// Cycle is a Body that goes round the given bodies. They must not be changed.
func Cycle(bodies ...[]byte) func(i int) []byte {
	return func(i int) []byte { return bodies[i%len(bodies)] }
}

// complete fills in what was left out, or says what is wrong.
func (c Config) complete() (Config, error) {
	c.Connections = cmp.Or(c.Connections, 64)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	var errs []error
	if !(c.Rate > 0 && c.Rate <= maxRate) {
		errs = append(errs, fmt.Errorf("load: rate must be above 0 and at most %g per second", float64(maxRate)))
	}
	if c.Duration <= 0 || c.Duration > maxTime {
		errs = append(errs, fmt.Errorf("load: duration must be above 0 and at most %v", maxTime))
	}
	if c.Timeout < 0 || c.Timeout > maxTime {
		errs = append(errs, fmt.Errorf("load: timeout must be above 0 and at most %v", maxTime))
	}
	if c.Connections < 0 || c.Connections > maxConnections {
		errs = append(errs, fmt.Errorf("load: connections must be between 1 and %d", maxConnections))
	}
	if c.Body == nil {
		errs = append(errs, errors.New("load: body is missing: use Cycle for fixed ones"))
	}
	return c, errors.Join(errs...)
}
