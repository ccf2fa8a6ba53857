package predict

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// observeEvery is how often policies are told how asking went.
	observeEvery = time.Second
	// badNews is how many failures and misses are told sooner, though not more often
	// than observeLeast.
	badNews      = 5
	observeLeast = 20 * time.Millisecond
)

// tallies count how asking went, for a policy that learns from it.
type tallies struct {
	urgent chan<- struct{} // has a token when there is bad news

	mu  sync.Mutex // guards the following
	all map[serving.Definition]selection.Tally
	bad float64 // failures and misses in all
}

func newTallies(urgent chan<- struct{}) *tallies {
	return &tallies{urgent: urgent, all: map[serving.Definition]selection.Tally{}}
}

// add counts; a version is in the catalog, so that there are not too many.
func (t *tallies) add(d serving.Definition, more selection.Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum(d, more)
	if t.bad += more.Failures + more.Missed; t.bad >= badNews {
		select {
		case t.urgent <- struct{}{}:
		default: // there is a token already
		}
	}
}

// restore takes back what could not be handed on.
func (t *tallies) restore(all map[serving.Definition]selection.Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d, one := range all {
		t.sum(d, one)
	}
}

// sum adds. t.mu is held.
func (t *tallies) sum(d serving.Definition, more selection.Tally) {
	own := t.all[d]
	own.ModelID = d.ModelID
	own.Answers += more.Answers
	own.Failures += more.Failures
	own.Missed += more.Missed
	t.all[d] = own
}

func (t *tallies) take() map[serving.Definition]selection.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.all
	t.all, t.bad = map[serving.Definition]selection.Tally{}, 0
	return all
}

// Learner stores what policies have learned.
type Learner interface {
	Observe(ctx context.Context, a *state.App, tallies []selection.Tally) error
}

// Observe tells policies how asking went, until ctx ends. What could not be stored is
// told again later.
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
		least := p.observeAll(ctx, to, failing, log)
		select { // of a storm of failures not each is told by itself
		case <-time.After(least):
		case <-ctx.Done():
		}
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
			log.Warn("cannot store how a policy's models are doing; retrying", "app", name, "err", err)
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
