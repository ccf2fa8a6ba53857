package load

import (
	"context"
	"time"
)

// sender sends on one connection, one request at a time.
type sender struct {
	conn    *conn
	body    func(i int) []byte
	seen    func(reply []byte)
	timeout time.Duration
	tally   *tally
}

// run sends what the schedule gives it until that or ctx ends.
func (s *sender) run(ctx context.Context, turn chan *schedule) {
	defer s.conn.close()
	var free time.Time // when this sender had nothing to do any more
	for {
		held := <-turn // its holder passes it on when its wait ends
		i, due, ok := held.take(ctx)
		turn <- held
		if !ok {
			return
		}
		free = s.send(ctx, i, due, free)
	}
}

// send sends the i-th request and returns when it was over.
func (s *sender) send(ctx context.Context, i int, due, free time.Time) time.Time {
	sent := time.Now()
	deadline := due.Add(s.timeout)
	if sent.After(deadline) {
		s.tally.unsent()
		return sent
	}
	reply, err := s.conn.post(ctx, s.body(i), deadline)
	over := time.Now()
	s.tally.sent(due, free, sent)
	if err != nil {
		s.tally.failed(kindOf(ctx, err))
	} else {
		s.tally.answered(reply, over.Sub(due))
		if s.seen != nil {
			s.seen(reply.body)
		}
	}
	return over
}
