package predict

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/serving"
)

// backlogs has what is said of backlogs in a second.
type backlogs struct {
	mu   sync.Mutex
	last []serving.Backlog
}

func (b *backlogs) WriteDemand(r serving.DemandReport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = r.Backlogs
}

func (b *backlogs) get() []serving.Backlog {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// What waits for apps waits for the versions that take their queries.
func TestBacklog(t *testing.T) {
	bubble(t, func(t *rig) {
		t.p.Demand = demand.NewMeter()
		var got backlogs
		ctx, stop := context.WithCancel(t.ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			(&demand.Reporter{Source: serving.DemandSource{Role: "gateway", Name: "g"}, Meter: t.p.Demand, Sink: &got}).Run(ctx)
		}()
		want := func(when string, waiting []serving.AppBacklog, want ...serving.Backlog) {
			t.Helper()
			t.p.Backlog("wine", time.Minute, waiting)
			time.Sleep(1100 * time.Millisecond)
			if got := got.get(); !slices.Equal(got, want) {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		waits := func(id serving.ModelID, records, answered uint64) serving.Backlog {
			return serving.Backlog{ModelID: id, Stream: "wine", Records: records, Answered: answered, CatchUp: time.Minute}
		}
		app := []serving.AppBacklog{{App: "app", Records: 100, Answered: 10}}
		want("without a catalog", app)
		t.serves(nil, m1)
		want("without a replica", app, waits(m1, 100, 10))
		t.links(func(a *serving.App) { a.Policy = serving.PolicySpec{Kind: serving.PolicyMean} }, a1, b1)
		want("of two models", app, waits(a1, 100, 10), waits(b1, 100, 10))
		t.set(newCatalog([]*serving.App{newApp("app", "m"), newApp("other", "m")}, newModel(m1)))
		want("of two apps of one model", append(app, serving.AppBacklog{App: "other", Records: 1}, serving.AppBacklog{App: "none", Records: 5}), waits(m1, 101, 10))
		want("no longer", nil)
		t.staged(nil, stage("first", "a"), stage("second", "b"), stage("third", "nobody"))
		want("of stages", app, waits(a1, 100, 10), waits(b1, 100, 10))
		stop()
		<-ended
	})
}
