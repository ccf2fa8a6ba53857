package scheduler

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/serving"
)

// decideAll decides about every version that may want something.
func (l *loop) decideAll(ctx context.Context, now time.Time) {
	if !l.informed(now) {
		return
	}
	held := l.holdRemovals(now)
	for _, e := range l.active {
		switch {
		case e.over():
			l.forget(e)
		case !e.gone():
			l.decide(ctx, e, now)
		case !held:
			l.removeJob(ctx, e, now)
		}
	}
}

// informed says whether enough is known to decide anything.
func (l *loop) informed(now time.Time) bool {
	return l.catalog != nil && !l.read.IsZero() && now.Sub(l.read) < jobsFresh
}

// pending says whether what the last change of the entry did is yet to be seen.
func (l *loop) pending(e *entry) bool { return e.busy || e.trustFrom > l.seen }

// decide decides about a registered version, and sees to it that it becomes so.
func (l *loop) decide(ctx context.Context, e *entry, now time.Time) {
	if l.pending(e) || !l.informed(now) {
		return
	}
	in := l.input(e, now)
	d, state := scale.Decide(e.state, in)
	e.state, e.load = state, scale.LoadOf(state, in, d)
	if d.To == d.From && l.outdated(e, now) {
		d.Rule, d.Reason = ruleUpdate, "the job was made by another release or with other settings"
		if e.job.Redefined {
			d.Reason = "the version was redefined"
		}
	}
	d.Leader, d.Fence = l.cfg.Name, l.term.Fence()
	e.decision = d
	version, slo, change := e.version, e.longest, e.change()
	l.pursue(ctx, e, now, func(ctx context.Context) error { return l.cfg.Fleet.SetCount(ctx, version, slo, change) })
	if e.dormant() && !l.windows.Has(e.id) {
		delete(l.active, e.id)
	}
}

func (l *loop) input(e *entry, now time.Time) scale.Input {
	in := scale.Input{
		Now: now, Version: e.version, Role: e.role, SLO: e.slo,
		Demand: l.windows.Demand(e.id, now),
		Job:    e.job, Ready: e.ready, Woken: e.woken,
	}
	switch e.role {
	case scale.Rollout:
		in.Behind = l.behind(e)
	case scale.Old:
		in.Settled = l.settled(e)
	}
	return in
}

// change is what e's decision asks for.
func (e *entry) change() serving.JobChange {
	return serving.JobChange{Count: e.decision.To, Index: e.job.Index, Reason: e.decision.Rule + ": " + e.decision.Reason}
}

// pursue has e's decision carried out by do, where it asks for a change and that
// can be made now.
func (l *loop) pursue(ctx context.Context, e *entry, now time.Time, do func(context.Context) error) {
	d := &e.decision
	switch {
	case d.To == d.From && d.Rule != ruleUpdate && d.Rule != ruleGone:
		e.calm()
	case l.cfg.DryRun:
		d.Outcome = outcomeDryRun
		l.record(e)
	case e.job.Blocked != "":
		l.block(e, e.job.Blocked, now)
	case now.Before(e.retry):
		d.Outcome, d.Error = outcomeFailed, e.alarm
	default:
		l.act(ctx, e, do)
	}
	l.board.put(e)
}
