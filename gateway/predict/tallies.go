package predict

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"topsail/gateway/selection"
	"topsail/gateway/state"
	"topsail/serving"
)

// observeEvery is how often policies are told how asking went.
const observeEvery = time.Second

// tallies count how asking went, for a policy that learns from it.
type tallies struct {
	mu  sync.Mutex // guards the following
	all map[serving.ModelID]*selection.Tally
}

func newTallies() *tallies { return &tallies{all: map[serving.ModelID]*selection.Tally{}} }

// add counts; a version is in the catalog, so that there are not too many.
func (t *tallies) add(more selection.Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.all[more.ModelID]
	if own == nil {
		own = &selection.Tally{ModelID: more.ModelID}
		t.all[more.ModelID] = own
	}
	own.Answers += more.Answers
	own.Failures += more.Failures
	own.Missed += more.Missed
}

func (t *tallies) take() (list []selection.Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.all {
		list = append(list, *one)
	}
	clear(t.all)
	return list
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
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		apps := p.apps.Load()
		if apps == nil {
			continue
		}
		for name, a := range *apps {
			err := a.observe(ctx, to)
			if err != nil && !failing[name] && !errors.Is(err, context.Canceled) {
				log.Warn("cannot store how a policy's models are doing; trying on", "app", name, "err", err)
			}
			if err != nil {
				failing[name] = true
			} else {
				delete(failing, name)
			}
		}
	}
}

// observe hands the counts of one app on, or keeps them.
func (a *app) observe(ctx context.Context, to Learner) error {
	if a.tallies == nil || a.learned == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*observeEvery)
	defer cancel()
	list := a.tallies.take()
	err := to.Observe(ctx, a.learned, list)
	if err != nil {
		for _, one := range list {
			a.tallies.add(one)
		}
	}
	return err
}
