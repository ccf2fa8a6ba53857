package traffic

import (
	"context"

	"github.com/topsail-serving/topsail/internal/obs"
)

// Process is this process as a Source.
type Process struct{ Registry *obs.Registry }

// Scrape implements Source.
func (p Process) Scrape(context.Context) ([]*obs.Family, error) { return p.Registry.Gather() }
