package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// demandWithin leaves a slow reader of demand behind before the second is over;
	// much, after an outage or at the beginning, may take longer.
	demandWithin = 700 * time.Millisecond
	muchWithin   = 5 * time.Second
	much         = 10 * time.Second
	jobsWithin   = 5 * time.Second
	// jobsFresh is how old the list of jobs may be that is acted upon. Each change
	// names the job's index, so that an old list does no harm; it is just no use.
	jobsFresh = 15 * time.Second
)

// reading is a look at the demand, where demand says so, and at the jobs.
type reading struct {
	sequence int
	began    time.Time

	demand   bool
	from, to time.Time
	reports  []serving.DemandReport
	reported error

	jobs   []serving.Job
	listed error
}

// startReading looks; at the demand, if a look is under way, after that one.
func (l *loop) startReading(ctx context.Context, demand bool) {
	if l.reading {
		l.due = l.due || demand
		return
	}
	l.reading, l.due = true, false
	l.sequence++
	now := time.Now()
	r := reading{sequence: l.sequence, began: now, demand: demand, from: l.windows.From(now), to: now.Truncate(time.Second).UTC()}
	l.workers.Go(func() {
		r.fetch(ctx, l.cfg)
		l.readings <- r // has room: there is one reading at a time
	})
}

func (r *reading) fetch(ctx context.Context, cfg Config) {
	var both sync.WaitGroup
	if r.demand {
		both.Go(func() {
			within := demandWithin
			if r.to.Sub(r.from) > much {
				within = muchWithin
			}
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			r.reports, r.reported = cfg.Demand.ReadDemand(ctx, r.from, r.to)
		})
	}
	both.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, jobsWithin)
		defer cancel()
		r.jobs, r.listed = cfg.Fleet.Jobs(ctx)
	})
	both.Wait()
}

// takeReading takes in what was read, and decides.
func (l *loop) takeReading(ctx context.Context, r reading, now time.Time) {
	l.reading = false
	if r.demand {
		l.takeDemand(r, now)
	}
	l.noteFailure("read the jobs", r.listed)
	if r.listed == nil {
		l.read, l.seen = r.began, r.sequence
		l.takeJobs(r.jobs, now)
	}
	l.decideAll(ctx, now)
	l.board.note(l.unknown, l.read, l.guard.held)
	l.serve(ctx)
	if r.demand {
		l.metrics.tick.Observe(time.Since(r.began).Seconds())
	}
	if l.due {
		l.startReading(ctx, true)
	}
}

func (l *loop) takeDemand(r reading, now time.Time) {
	l.noteFailure("read the demand", r.reported)
	if r.reported == nil {
		l.windows.Take(r.reports, r.from, now)
	}
	switch why := l.windows.Unknown(now); {
	case why == "":
		l.unknown = time.Time{}
	case l.unknown.IsZero():
		l.unknown = now
	}
	for id := range l.windows.Versions() {
		if e := l.entries[id]; e != nil {
			l.active[id] = e
		}
	}
}

// noteFailure logs when something begins to fail, and when it no longer does.
func (l *loop) noteFailure(what string, err error) {
	switch failed := l.failing[what]; {
	case err != nil && !failed:
		l.cfg.Log.Warn("cannot "+what+"; decisions that need it wait", "err", err)
		l.failing[what] = true
	case err == nil && failed:
		l.cfg.Log.Info("can " + what + " again")
		delete(l.failing, what)
	}
}

// lookSoon has the jobs looked at before the next second.
func (l *loop) lookSoon() {
	if !l.hinted {
		l.hinted = true
		l.hint.Reset(apart)
	}
}

// takeHint looks at the jobs, after a look that is under way.
func (l *loop) takeHint(ctx context.Context) {
	if l.reading {
		l.lookSoon()
		return
	}
	l.startReading(ctx, false)
}
