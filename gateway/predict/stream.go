package predict

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// stream is an answer that comes in parts.
//
// The parts are those of one model, where the app's policy says that one alone answers. The answer of several models
// that are combined, of stages, of the cache, and of a model that answers as a whole is one part.
type stream struct {
	p      *Predictor
	r      *request // nil once it is closed
	q      *query
	last   time.Time // when the last part was given; zero: none was
	ended  bool
	answer serving.Prediction
}

// streamed is what a query knows of being answered in parts.
type streamed struct {
	of     int           // the attempt whose parts are read
	reader *cache.Reader // nil: the answer comes as a whole
	flight *cache.Flight
	first  time.Time // when the first part was given; zero: none was
}

// Stream asks a query whose answer is to come in parts: the first one by the app's SLO, the others
// by its slo_between after each other, and all by its slo_total. It fails as Predict does.
func (p *Predictor) Stream(asked *serving.Query) (serving.Parts, error) {
	r, own := p.request(1), *asked
	q := &r.queries[0]
	if err := q.begin(p, &own, r.wake, 0); err != nil {
		p.release(r)
		return nil, err
	}
	if q.plan.Alone {
		q.parts = &streamed{}
	}
	q.planner.step(q, q.begun)
	s := &stream{p: p, r: r, q: q}
	s.answer.QueryID = p.ids.Next()
	return s, nil
}

// Next implements serving.Parts.
func (s *stream) Next(ctx context.Context) (*serving.Output, error) {
	for now := time.Now(); ; now = time.Now() {
		if out := s.part(now); out != nil {
			return out, nil
		}
		if s.ended {
			return nil, io.EOF
		}
		if s.q.parts.behind() {
			s.q.cut(tooSlow)
		}
		if s.q.done || s.step(now) {
			if out := s.part(now); out != nil { // it came in between
				return out, nil
			}
			return s.end(now)
		}
		if !s.r.sleep(ctx, s.q.next(), now) {
			return nil, context.Cause(ctx)
		}
	}
}

// step brings the query on, and says whether it has its verdict.
func (s *stream) step(now time.Time) bool {
	if s.q.parts.given() {
		return s.q.follow(now)
	}
	return s.q.planner.step(s.q, now)
}

// part is the next part that has come, or nil.
func (s *stream) part(now time.Time) *serving.Output {
	parts := s.q.parts
	if !parts.reads() || s.ended || !s.last.IsZero() && !now.Before(s.total()) {
		return nil
	}
	out := parts.reader.Next()
	if out == nil {
		return nil
	}
	if parts.first.IsZero() {
		parts.first = now
		s.q.withdraw() // the other models
	}
	s.last = now
	s.q.postpone(s.due(now))
	return out
}

// due is when the next part must have come.
func (s *stream) due(now time.Time) time.Time {
	if next := now.Add(s.q.app.Between()); next.Before(s.total()) {
		return next
	}
	return s.total()
}

// total is when the answer must have ended.
func (s *stream) total() time.Time { return s.q.Received.Add(s.q.app.Total()) }

// end makes the prediction. An output of which no part was given is one.
func (s *stream) end(now time.Time) (*serving.Output, error) {
	s.ended = true
	q := s.q
	begun := !s.last.IsZero()
	why := q.verdict.Failure
	if begun && q.verdict.Output == nil && why == nil {
		why = s.overdue(now)
		q.verdict.Failure = why
	}
	id := s.answer.QueryID
	s.answer = serving.Prediction{}
	q.answer(id, &s.answer)
	if s.answer.Default && why != nil && why.Cause == serving.MissedSLO && (begun || why == tooSlow) {
		s.answer.Explanation = "Stream cut: " + why.Message
	}
	if begun || s.answer.Full == nil || s.answer.Full.Uncollected {
		return nil, io.EOF
	}
	s.last = now
	return s.answer.Full, nil
}

// overdue is why a stream whose next part did not come has ended.
func (s *stream) overdue(now time.Time) *serving.Failure {
	a := s.q.app
	why := fmt.Sprintf("the next part of the answer did not come within slo_between, %v", a.Between())
	if !now.Before(s.total()) {
		why = fmt.Sprintf("the answer did not end within slo_total, %v", a.Total())
	}
	return &serving.Failure{Cause: serving.MissedSLO, Message: why}
}

// tooSlow ends a stream whose reader does not keep up with the model.
var tooSlow = &serving.Failure{Cause: serving.MissedSLO, Message: "the answer was read too slowly"}

// Answer implements serving.Parts.
func (s *stream) Answer() *serving.Prediction { return &s.answer }

// Close implements serving.Parts.
func (s *stream) Close() {
	if s.r == nil {
		return
	}
	if parts := s.q.parts; parts.reads() {
		parts.flight.Leave(parts.reader)
	}
	if !s.ended {
		s.q.withdraw()
	}
	s.p.release(s.r)
	s.r, s.q = nil, nil
}

// behind says whether the reader was cut off.
func (p *streamed) behind() bool { return p.reads() && p.reader.Behind() }

// streams says whether an attempt is to answer in parts: the first one, and if it fails without any the next.
func (q *query) streams(i int) bool {
	return q.parts != nil && !q.plan.Asks[i].Shadow && (!q.parts.reads() || q.parts.of == i || q.answers[q.parts.of].Come())
}

// lead has a flight that this query opened for an attempt take its answer in parts.
func (p *streamed) lead(of int, flight *cache.Flight, wake cache.Waiter, cancel func()) {
	p.of, p.flight, p.reader = of, flight, flight.Stream(wake, cancel)
}

// join reads the parts of a flight that another query opened, if it has some.
func (p *streamed) join(of int, flight *cache.Flight, wake cache.Waiter) {
	p.of, p.flight, p.reader = of, flight, flight.Reader(wake)
}

// reads says whether the answer is read in parts.
func (p *streamed) reads() bool { return p != nil && p.reader != nil }

// readsOf says whether it is read from an attempt.
func (p *streamed) readsOf(i int) bool { return p.reads() && p.of == i }

// given says whether parts were given, so that nothing else can be the answer.
func (p *streamed) given() bool { return p != nil && !p.first.IsZero() }

// postpone gives the attempt whose parts are read until then.
func (q *query) postpone(until time.Time) {
	q.respond, q.again = until, 0
	q.attempts[q.parts.of].respond, q.attempts[q.parts.of].hedgeAt = until, time.Time{}
}

// follow waits for the end of the answer of which parts were given: no other can take its place.
func (q *query) follow(now time.Time) bool {
	of, over := q.parts.of, !now.Before(q.respond)
	if q.collect(now); over {
		q.leave(now)
	}
	a := &q.answers[of]
	if !a.Come() && !over {
		return false
	}
	d := selection.Decision{Done: true, Verdict: selection.Verdict{
		Output: a.Output, Failure: a.Failure, Model: q.plan.Asks[of].ID, Ended: selection.EndedAll,
	}}
	if a.Output != nil {
		d.Confidence = selection.Confidence(a.Output)
	} else if over {
		d.Ended = selection.EndedDeadline
	}
	q.decide(d)
	return true
}

// cut ends the query for a reason of its own.
func (q *query) cut(why *serving.Failure) {
	q.verdict.Output, q.verdict.Failure, q.done = nil, why, true
}
