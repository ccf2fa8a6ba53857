package predict

import "time"

// allow gives the query so much time, or its client's own limit if that is shorter.
func (q *query) allow(limit time.Duration) {
	if q.Timeout > 0 && q.Timeout < limit {
		limit = q.Timeout
	}
	q.budget = limit - min(q.app.margin, limit/20)
	q.respond = q.Received.Add(q.budget)
}

// next is when the query must be looked at again at the latest.
func (q *query) next() time.Time {
	at := q.respond
	if q.parts.given() {
		return at // nothing else counts any more
	}
	if q.again > 0 {
		if t := q.begun.Add(q.again); t.Before(at) {
			at = t
		}
	}
	for i := range q.attempts[:q.opened] {
		if q.answers[i].Come() {
			continue
		}
		for _, t := range []time.Time{q.attempts[i].hedgeAt, q.attempts[i].respond} {
			if !t.IsZero() && t.Before(at) {
				at = t
			}
		}
	}
	return at
}
