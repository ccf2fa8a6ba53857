package predict

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/rollout"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/gateway/timing"
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
	p.pool.New = func() any { return newRequest() }
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

// Predict answers a query by its app's SLO, with the default output where no
// prediction could be had. It fails only for an app that does not exist
// (serving.ErrUnknownApp, serving.ErrNoCatalog), a query that cannot be (*serving.QueryError), or a
// context that has ended.
func (p *Predictor) Predict(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
	return p.predict(ctx, q, nil)
}

func (p *Predictor) predict(ctx context.Context, q *serving.Query, t *timing.Timing) (serving.Prediction, error) {
	r := p.pool.Get().(*request)
	defer p.release(r)
	one, err := r.begin(p, q, 0)
	if err != nil {
		return serving.Prediction{}, err
	}
	one.watch(t)
	one.ask()
	if err := r.await(ctx); err != nil {
		return serving.Prediction{}, err
	}
	return one.answer(), nil
}

// PredictBatch answers several queries of one request, in order. Each has its own
// fate; an error means that one of them cannot be, and none was asked.
func (p *Predictor) PredictBatch(ctx context.Context, qs []serving.Query) ([]serving.Prediction, error) {
	return p.PredictTimed(ctx, qs, nil)
}

// PredictTimed is PredictBatch, and says in t from Selected to Combined how the first query came
// to its answer. A nil t records nothing.
func (p *Predictor) PredictTimed(ctx context.Context, qs []serving.Query, t *timing.Timing) ([]serving.Prediction, error) {
	if len(qs) > 0 && p.waits(qs[0].App) {
		return p.predictEach(ctx, qs, t)
	}
	r := p.pool.Get().(*request)
	defer p.release(r)
	for i := range qs {
		if _, err := r.begin(p, &qs[i], 0); err != nil {
			return nil, cmp.Or(p.fit(qs), err) // which says of a batch what input it is
		}
	}
	for i, q := range r.queries {
		if i == 0 {
			q.watch(t)
		}
		q.ask()
	}
	if err := r.await(ctx); err != nil {
		return nil, err
	}
	answers := make([]serving.Prediction, len(qs))
	for i, q := range r.queries {
		answers[i] = q.answer()
	}
	return answers, nil
}

// waits says whether a query of the app waits on its way for the model that decides for it.
func (p *Predictor) waits(app string) bool {
	a, err := p.app(app)
	return err == nil && a.Policy.Kind == serving.PolicyCustom
}

// fit says why one of the queries of a request cannot be asked of any model of its app, or nil.
func (p *Predictor) fit(qs []serving.Query) error {
	a, err := p.app(qs[0].App)
	if err != nil {
		return err
	}
	for i := range qs {
		misfit := a.misfit(qs[i].Input.Len())
		switch {
		case misfit != nil && len(qs) > 1:
			return &serving.QueryError{Cause: fmt.Sprintf("input_batch[%d]: %s", i, misfit.Message)}
		case misfit != nil:
			return &serving.QueryError{Cause: misfit.Message}
		}
	}
	return nil
}

// misfit is why no model can be asked about an input of such a length, or nil.
func (a *app) misfit(length int) (why *serving.Failure) {
	for _, l := range a.models {
		v, _ := a.serving(l)
		if v == nil {
			continue
		}
		no := v.misfit(length)
		if no == nil {
			return nil
		}
		why = cmp.Or(why, no)
	}
	return why
}

// maxSideBySide is how many queries of a batch that wait on their way do so at a time.
const maxSideBySide = 64

// predictEach predicts each query of a batch alone, so that none waits for the policy's decision
// on another.
func (p *Predictor) predictEach(ctx context.Context, qs []serving.Query, first *timing.Timing) ([]serving.Prediction, error) {
	if err := p.fit(qs); err != nil {
		return nil, err
	}
	answers := make([]serving.Prediction, len(qs))
	var group errgroup.Group
	group.SetLimit(maxSideBySide)
	for i := range qs {
		t := first
		if i > 0 {
			t = nil
		}
		group.Go(func() (err error) {
			answers[i], err = p.predict(ctx, &qs[i], t)
			return err
		})
	}
	return answers, group.Wait()
}
