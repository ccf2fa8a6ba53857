package traffic

import (
	"context"

	"github.com/topsail-serving/topsail/internal/obs"
)

// Process is this process as a Source.
type Process struct{ Registry *obs.Registry }

// Read implements Source.
func (p Process) Read(_ context.Context, readers obs.Readers) error {
	p.Registry.Read(readers)
	return nil
}
