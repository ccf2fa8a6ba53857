package predict

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/rollout"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/serving"
)

// maxMargin is what is kept of a query's time for sending the answer.
const maxMargin = 500 * time.Microsecond

// Predictor answers queries of all apps of a catalog.
type Predictor struct {
	Demand  *demand.Meter // nil: demand is not counted; set before the first SetCatalog
	Records Recorder      // nil: answers leave no records; set before the first query

	cache    *cache.Cache
	dispatch *dispatch.Dispatcher
	ids      *IDs
	metrics  *Metrics
	states   States
	single   selection.Policy // of queries that name a version

	apps     atomic.Pointer[map[string]*app]   // nil until there is a catalog
	mu       sync.Mutex                        // serialises SetCatalog; guards served, tallies and revision
	served   map[string]*served                // by model; outlives catalogs
	tallies  map[serving.ModelID]*demand.Tally // of versions that apps use; outlives catalogs
	revision uint64                            // of the catalog in use
	urgent   chan struct{}                     // has a token when policies are to be told at once
	observed map[string]*tallies               // by app, of policies that observe; outlives catalogs
	pool     sync.Pool                         // of *request
}

// States has what policies have learned.
type States interface {
	// Get is the newest state that is known, without waiting for anything.
	Get(a *state.App, user, context string) *selection.State
}

// New makes a predictor without apps.
func New(c *cache.Cache, d *dispatch.Dispatcher, ids *IDs, states States, metrics *Metrics) *Predictor {
	p := &Predictor{
		cache: c, dispatch: d, ids: ids, metrics: metrics, states: states, single: rollout.NewSingle(serving.PolicySpec{}, nil),
		served: map[string]*served{}, tallies: map[serving.ModelID]*demand.Tally{}, urgent: make(chan struct{}, 1), observed: map[string]*tallies{},
	}
	p.pool.New = func() any { return &request{wake: make(cache.Waiter, 1)} }
	return p
}

// App finds a registered app, or fails with serving.ErrUnknownApp or
// serving.ErrNoCatalog.
func (p *Predictor) App(name string) (*serving.App, error) {
	a, err := p.app(name)
	if err != nil {
		return nil, err
	}
	return a.App, nil
}

func (p *Predictor) app(name string) (*app, error) {
	apps := p.apps.Load()
	if apps == nil {
		return nil, serving.ErrNoCatalog
	}
	if a := (*apps)[name]; a != nil {
		return a, nil
	}
	return nil, serving.ErrUnknownApp
}
