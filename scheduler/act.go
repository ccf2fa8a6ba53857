package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// What can become of a decision that asks for a change.
const (
	outcomeApplied  = "applied"
	outcomeDryRun   = "dry_run"
	outcomeBlocked  = "blocked"
	outcomeConflict = "conflict"
	outcomeFailed   = "failed"
)

const (
	actWithin    = 10 * time.Second // one change
	alarmBlocked = 2 * time.Minute
)

// errTermOver says that a change was not asked for, since the term is over.
var errTermOver = errors.New("this scheduler no longer leads")

// outcome is what became of e's decision.
type outcome struct {
	entry   *entry
	version *serving.Version // that it was about
	err     error
}

// act carries out do, and reports outcomes. The entry does not change meanwhile.
func (l *loop) act(ctx context.Context, e *entry, do func(context.Context) error) {
	e.busy = true
	version := e.version
	l.workers.Go(func() { l.outcomes <- outcome{e, version, l.perform(ctx, do)} })
}

// perform carries out do when it is its turn.
func (l *loop) perform(ctx context.Context, do func(context.Context) error) error {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return errTermOver
	}
	return l.lead(ctx, do)
}

// lead carries out do if the term is valid now. All that is asked of others goes
// through here.
func (l *loop) lead(ctx context.Context, do func(context.Context) error) error {
	if ctx.Err() != nil || !l.term.Valid() {
		return errTermOver
	}
	ctx, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	return do(ctx)
}

// takeOutcome takes in what became of a change. What the job is like now is for the
// next reading to say.
func (l *loop) takeOutcome(o outcome, now time.Time) {
	e, d := o.entry, &o.entry.decision
	e.busy = false
	e.trustFrom = l.sequence + 1
	l.lookSoon()
	switch {
	case errors.Is(o.err, errTermOver):
		return
	case o.err == nil:
		d.Outcome = outcomeApplied
		e.calm()
		e.noteApplied(o.version, now)
		l.cfg.Log.Info("replicas were set", "model", e.id, "from", d.From, "to", d.To, "rule", d.Rule, "reason", d.Reason)
	case errors.Is(o.err, serving.ErrJobBlocked):
		l.block(e, o.err.Error(), now)
		l.board.put(e)
		return
	case errors.Is(o.err, serving.ErrJobChanged):
		d.Outcome, d.Error = outcomeConflict, o.err.Error()
		if e.failures++; e.failures > 1 {
			e.retry = now.Add(time.Second)
		}
	default:
		l.fail(e, o.err, now)
	}
	l.record(e)
	l.board.put(e)
}

// noteApplied notes that the job was changed, for the version as it was then.
func (e *entry) noteApplied(version *serving.Version, now time.Time) {
	switch {
	case e.decision.Rule != ruleUpdate:
		e.state.Changed = now
	case e.version == version:
		e.updated = now
	}
}

// block notes that the job cannot be changed now, which is not a fault, but worth a look when it
// lasts.
func (l *loop) block(e *entry, why string, now time.Time) {
	e.decision.Outcome, e.decision.Error = outcomeBlocked, why
	if e.blocked.IsZero() {
		e.blocked = now
	}
	if e.alarm == "" && now.Sub(e.blocked) > alarmBlocked {
		e.alarm = fmt.Sprintf("the job could not be changed for %v: %s", alarmBlocked, why)
		l.cfg.Log.Error("a job cannot be changed; remove what blocks it", "model", e.id, "since", e.blocked, "why", why, "wanted", e.decision.To)
	}
	l.record(e)
}

// fail notes a change that was refused, or could not be asked for, and backs off: from a second
// on, or a minute where a retry cannot succeed.
func (l *loop) fail(e *entry, err error, now time.Time) {
	e.decision.Outcome, e.decision.Error = outcomeFailed, err.Error()
	least, most := time.Second, 30*time.Second
	if errors.Is(err, serving.ErrJobRefused) {
		least, most = time.Minute, 10*time.Minute
	}
	e.retry = now.Add(min(least<<min(e.failures, 10), most))
	if e.alarm != err.Error() {
		e.alarm = err.Error()
		l.cfg.Log.Error("replicas could not be set", "model", e.id, "from", e.decision.From, "to", e.decision.To, "err", err)
	}
	e.failures++
}

// record hands the decision to the journals, unless it says what they know.
func (l *loop) record(e *entry) {
	d, last := e.decision, e.recorded
	if d.Outcome != outcomeApplied && d.From == last.From && d.To == last.To && d.Outcome == last.Outcome && d.Error == last.Error {
		return
	}
	e.recorded = d
	l.metrics.decisions.WithLabelValues(d.Rule, d.Outcome).Inc()
	l.journal.add(d)
}
