package activity

import (
	"context"
	"time"
)

// Reporter says at the end of each interval what was done in it.
type Reporter struct {
	Counts *Counts
	Every  time.Duration // intervals begin at multiples of it; above 0
	// Write takes the points of the interval that began at a time, and the number of those that were too many. It must
	// not block.
	Write func(began time.Time, points []Point, tooMany int)
}

// Run reports until ctx ends, and then what was done since. What a late report counts of later intervals is in the one
// that has just ended.
func (r *Reporter) Run(ctx context.Context) {
	var last time.Time
	report := func(began time.Time) {
		if began.Equal(last) {
			return // the clock was set back a little: the interval goes on
		}
		last = began
		if points, tooMany := r.Counts.Take(); len(points) > 0 {
			r.Write(began, points, tooMany)
		}
	}
	for {
		now := time.Now()
		select {
		case <-time.After(r.interval(now).Add(r.Every).Sub(now)):
			report(r.interval(time.Now()).Add(-r.Every))
		case <-ctx.Done():
			report(r.interval(time.Now()))
			return
		}
	}
}

// interval is the beginning of the one that t is in.
func (r *Reporter) interval(t time.Time) time.Time { return t.UTC().Truncate(r.Every) }
