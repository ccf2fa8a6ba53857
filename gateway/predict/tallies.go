package predict

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// observeEvery is how often policies get the results of calls.
	observeEvery = time.Second
	// badNews is how many failures and misses are reported sooner, though not more often than
	// observeLeast.
	badNews      = 5
	observeLeast = 20 * time.Millisecond
)

// tallies count how asking went, for a policy that learns from it.
type tallies struct {
	urgent chan<- struct{} // has a token when there is bad news
	bad    atomic.Int64    // failures and misses in all, since they were taken

	mu  sync.Mutex // guards all
	all map[serving.Definition]*tally
}

// tally counts how asking one version went. Counting adds to it without a lock.
type tally struct {
	of                        *tallies
	answers, failures, missed atomic.Uint64
}

func newTallies(urgent chan<- struct{}) *tallies { return &tallies{urgent: urgent} }

// link gives versions their tallies, which they keep from catalog to catalog, and lets go those of others.
func (t *tallies) link(versions []*version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[serving.Definition]*tally, len(versions))
	for _, v := range versions {
		own := cmp.Or(all[v.Definition], t.all[v.Definition])
		if own == nil {
			own = &tally{of: t}
		}
		v.tally, all[v.Definition] = own, own
	}
	t.all = all
}

// failed counts a failure or a miss, which is bad news.
func (t *tally) failed(n *atomic.Uint64) {
	n.Add(1)
	if t.of.bad.Add(1) >= badNews {
		select {
		case t.of.urgent <- struct{}{}:
		default: // there is a token already
		}
	}
}

// take is what was counted since it was taken last, where something was.
func (t *tallies) take() map[serving.Definition]selection.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bad.Store(0)
	taken := map[serving.Definition]selection.Tally{}
	for d, own := range t.all {
		answers, failures, missed := own.answers.Swap(0), own.failures.Swap(0), own.missed.Swap(0)
		if answers+failures+missed > 0 {
			taken[d] = selection.Tally{ModelID: d.ModelID, Answers: float64(answers), Failures: float64(failures), Missed: float64(missed)}
		}
	}
	return taken
}

// restore takes back what could not be handed on.
func (t *tallies) restore(taken map[serving.Definition]selection.Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d, one := range taken {
		if own := t.all[d]; own != nil {
			own.answers.Add(uint64(one.Answers))
			own.failures.Add(uint64(one.Failures))
			own.missed.Add(uint64(one.Missed))
		}
	}
}

// Learner stores what policies have learned.
type Learner interface {
	Observe(ctx context.Context, a *state.App, tallies []selection.Tally) error
}

// Observe reports the results of calls to policies, until ctx ends. What could not be stored is
// reported again later.
func (p *Predictor) Observe(ctx context.Context, to Learner, log *slog.Logger) error {
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	failing := map[string]bool{}
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-p.urgent:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		retry.Sleep(ctx, p.observeAll(ctx, to, failing, log)) // a burst of failures is reported together
	}
	return context.Cause(ctx)
}

// observeAll hands on the counts of all apps, and says how long to wait at the least
// before the next time.
func (p *Predictor) observeAll(ctx context.Context, to Learner, failing map[string]bool, log *slog.Logger) time.Duration {
	apps := p.apps.Load()
	if apps == nil {
		return observeEvery
	}
	for name, a := range *apps {
		err := a.observe(ctx, to)
		if err == nil {
			delete(failing, name)
			continue
		}
		if !failing[name] && ctx.Err() == nil {
			log.Warn("cannot store the standings of a policy's models; retrying", "app", name, "err", err)
		}
		failing[name] = true
	}
	if len(failing) > 0 {
		return observeEvery
	}
	return observeLeast
}

// observe hands the counts of one app on, or keeps them. How asking went what a version was
// before says nothing of what it is.
func (a *app) observe(ctx context.Context, to Learner) error {
	if a.tallies == nil || a.learned == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*observeEvery)
	defer cancel()
	all := a.tallies.take()
	maps.DeleteFunc(all, func(d serving.Definition, _ selection.Tally) bool { return !a.defines(d) })
	err := to.Observe(ctx, a.learned, slices.Collect(maps.Values(all)))
	if err != nil {
		a.tallies.restore(all)
	}
	return err
}
