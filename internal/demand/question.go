package demand

import "time"

// Question is a question that no cache answered, while it is in flight. The zero
// Question is not counted.
type Question struct {
	tally *Tally
	until time.Duration // its deadline, by the clock of the tally
}

// Began counts a question that is in flight from now on, and wants an output by the
// deadline. The caller ends it, once.
func (t *Tally) Began(now, deadline time.Time) Question {
	if t == nil {
		return Question{}
	}
	t.arrivals.Add(1)
	t.flying.begin(now.Sub(t.opened))
	return Question{tally: t, until: deadline.Sub(t.opened)}
}

// Unserved says that there was no replica to ask.
func (q Question) Unserved() {
	if q.tally != nil {
		q.tally.unserved.Add(1)
	}
}

// Ended ends it now, with an output or without. One that comes after the deadline is of
// no use to the client.
func (q Question) Ended(at time.Time, output bool) { q.EndedStream(at, at, output) }

// EndedStream ends a question whose answer came in parts. The first has to come by the deadline.
func (q Question) EndedStream(first, at time.Time, output bool) {
	if q.tally == nil {
		return
	}
	now := at.Sub(q.tally.opened)
	q.tally.flying.end(now)
	if !output || first.Sub(q.tally.opened) > q.until {
		q.tally.defaults.Add(1)
	}
}
