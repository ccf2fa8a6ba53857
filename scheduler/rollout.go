package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// served is what became of making versions the serving ones of their models.
type served struct {
	ids     []serving.ModelID
	catalog *serving.Catalog
	err     error
}

// serve notes in the catalog every current version that has a ready replica.
func (l *loop) serve(ctx context.Context) {
	if l.cfg.DryRun {
		return
	}
	var ids []serving.ModelID
	for _, id := range l.rising {
		if l.canServe(id) && !l.noting[id] {
			l.noting[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		l.workers.Go(func() { l.served <- l.setServing(ctx, ids) })
	}
}

// canServe says whether a version has a ready replica. Of one that a host holds, or that is a service, the
// first question that was answered is the proof that it can be.
func (l *loop) canServe(id serving.ModelID) bool {
	if v := l.catalog.Version(id); v != nil && !v.OwnReplicas() {
		return l.windows.Answers(id)
	}
	return l.entries[id].ready > 0
}

// setServing is one change, however many versions there are: hosts load hundreds.
func (l *loop) setServing(ctx context.Context, ids []serving.ModelID) served {
	var cat *serving.Catalog
	err := l.lead(ctx, func(ctx context.Context) (err error) {
		cat, err = l.cfg.Catalog.ApplyFenced(ctx, catalog.SetServing(ids), l.term.Fence())
		return err
	})
	return served{ids, cat, err}
}

// takeServed goes on with the new catalog. After an error there is another try in
// the next second.
func (l *loop) takeServed(ctx context.Context, s served, now time.Time) {
	for _, id := range s.ids {
		delete(l.noting, id)
	}
	if errors.Is(s.err, errTermOver) {
		return
	}
	if errors.Is(s.err, serving.ErrFenced) {
		l.abdicate(s.err)
	}
	l.noteFailure("note which versions serve", s.err)
	if s.err == nil {
		for _, id := range s.ids {
			l.cfg.Log.Info("the current version serves", "model", id)
		}
		if s.catalog.Revision > l.catalog.Revision {
			l.takeCatalog(s.catalog, now)
			l.decideAll(ctx, now)
		}
	}
}
