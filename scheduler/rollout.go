package scheduler

import (
	"context"
	"errors"
	"time"

	"topsail/serving"
	"topsail/serving/catalog"
)

// served is what became of making id the serving version of its model.
type served struct {
	id      serving.ModelID
	catalog *serving.Catalog
	err     error
}

// serve notes in the catalog every current version that has a ready replica.
func (l *loop) serve(ctx context.Context) {
	if l.cfg.DryRun {
		return
	}
	for _, id := range l.rising {
		if e := l.entries[id]; e.ready > 0 && !e.serving {
			e.serving = true
			l.workers.Go(func() { l.served <- l.setServing(ctx, id) })
		}
	}
}

func (l *loop) setServing(ctx context.Context, id serving.ModelID) served {
	var cat *serving.Catalog
	err := l.lead(ctx, func(ctx context.Context) (err error) {
		cat, err = l.cfg.Catalog.ApplyFenced(ctx, catalog.SetServing{ID: id}, l.term.Fence())
		return err
	})
	return served{id, cat, err}
}

// takeServed goes on with the new catalog. After an error there is another try in
// the next second.
func (l *loop) takeServed(ctx context.Context, s served, now time.Time) {
	if e := l.entries[s.id]; e != nil {
		e.serving = false
	}
	if errors.Is(s.err, errTermOver) {
		return
	}
	if errors.Is(s.err, serving.ErrFenced) {
		l.abdicate(s.err)
	}
	l.noteFailure("note that "+s.id.String()+" serves", s.err)
	if s.err == nil {
		l.cfg.Log.Info("the current version serves", "model", s.id)
		if s.catalog.Revision > l.catalog.Revision {
			l.takeCatalog(s.catalog, now)
			l.decideAll(ctx, now)
		}
	}
}
