package demand

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Sink takes reports of demand.
type Sink interface {
	// WriteDemand must not block. It owns what it is given.
	WriteDemand(serving.DemandReport)
}

// Reporter reports what a meter counts, second by second.
//
// A report says what was counted between two ticks, a moment after the beginning
// and a moment after the end of its second. What a tick that is late by less than a
// second moves from one second to the one before it is added there and missing
// here, so that sums stay true. A process that was stopped for longer cannot tell
// in which of several seconds it counted what: those seconds, and the one that it
// came back in, are missing, which readers know to be unknown.
type Reporter struct {
	Source serving.DemandSource
	Meter  *Meter
	Sink   Sink
}

// maxSpan is the time between ticks from which on it is unknown which second
// something was counted in.
const maxSpan = 2 * time.Second

// Run reports until ctx ends, and then says that it was the last report.
func (r *Reporter) Run(ctx context.Context) {
	now := time.Now()
	s := span{since: now, second: second(now).Add(-time.Second)}
	for {
		select {
		case <-time.After(second(now).Add(time.Second).Sub(now)):
			now = time.Now()
			r.tick(&s, now)
		case <-ctx.Done():
			now = time.Now()
			r.tick(&s, now) // should its time have come at the same moment
			r.report(second(now), r.Meter.take(), true)
			return
		}
	}
}

// span is what was counted since the last tick.
type span struct {
	since  time.Time // when that was
	second time.Time // that it ended
	torn   bool      // its beginning was not at a tick in time
}

func (r *Reporter) tick(s *span, now time.Time) {
	ended := second(now).Add(-time.Second)
	if ended.Equal(s.second) {
		return // the clock was set back a little: the second goes on
	}
	late := now.Sub(s.since) >= maxSpan // by the monotonic clock
	demands := r.Meter.take()
	if !late && !s.torn {
		r.report(ended, demands, false)
	}
	*s = span{since: now, second: ended, torn: late}
}

func (r *Reporter) report(second time.Time, demands []serving.Demand, last bool) {
	r.Sink.WriteDemand(serving.DemandReport{Source: r.Source, Second: second, Demands: demands, Backlogs: r.Meter.takeBacklogs(), Last: last})
}

// second is the whole second that t is in.
func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
