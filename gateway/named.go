package gateway

import (
	"log/slog"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/obs"
)

// These are the internal types that Config and the configurations in it name, for programs of other modules.
type (
	Registry = obs.Registry    // the metrics of a process; its Handler serves them
	Meter    = demand.Meter    // counts demand
	Reporter = demand.Reporter // hands what a Meter counts to a DemandSink, once a second, while its Run runs
	Keys     = access.Keys     // what requests may have to show
	Hosts    = access.Hosts    // the names by which a gateway may be called
	Budget   = budget.Budget   // the bytes of requests and answers under way, which several listeners can share
)

// DemandSink takes reports of demand.
type DemandSink = demand.Sink

// NewRegistry holds the metrics of the Go runtime and the process from the start. One gateway at a time adds its own.
func NewRegistry() *Registry { return obs.NewRegistry() }

// NewMeter counts nothing yet.
func NewMeter() *Meter { return demand.NewMeter() }

// NewBudget is a budget of so many bytes, at least 1.
func NewBudget(bytes int64) *Budget { return budget.New(bytes) }

// KeysFile opens a file of keys, one per line, and follows its changes.
func KeysFile(path string, log *slog.Logger) (*Keys, error) { return access.KeysFile(path, log) }
