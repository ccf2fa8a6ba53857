package load

import (
	"context"
	"time"
)

// schedule says when to send. One sender holds it at a time.
type schedule struct {
	arrivals *arrivals
	alarm    *alarm
	start    time.Time
	duration time.Duration
}

// take waits for the next arrival, not at all when it is overdue. It says no at
// the end of the run and when ctx ends; the alarm must be interrupted for that.
func (s *schedule) take(ctx context.Context) (i int, due time.Time, ok bool) {
	i, at := s.arrivals.next()
	if at >= s.duration || ctx.Err() != nil {
		return 0, time.Time{}, false
	}
	due = s.start.Add(at)
	return i, due, s.alarm.wait(due)
}
