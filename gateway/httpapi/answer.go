package httpapi

import (
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/serving"
)

// reserveAnswer takes room for n answers, or one, of an app whose answers are large: while they are
// on their way, they take memory already.
func (s *Server) reserveAnswer(rc *fasthttp.RequestCtx, app string, n int) error {
	room := s.admission.AnswerSize(app) * max(n, 1)
	if room > 0 && !rc.Conn().(*conn).lease.Take(room) {
		return errNoMemory
	}
	rc.Conn().(*conn).room = room
	return nil
}

// growReservation is a buffer for the answers to a request, for which the budget has room in addition to the
// outputs.
func (s *Server) growReservation(rc *fasthttp.RequestCtx, app string, ps []serving.Prediction) ([]byte, error) {
	size, largest := 0, 0
	for i := range ps {
		size += len(ps[i].Output)
		largest = max(largest, len(ps[i].Output))
	}
	s.admission.LearnAnswerSize(app, onTheWay*2*largest, onTheWay*2*smallBody)
	c := rc.Conn().(*conn)
	if size <= smallBody {
		c.lease.Give(c.room)
		return buffer(rc), nil
	}
	size += smallBody + len(ps)*128
	if more := 2*size - c.room; more > 0 && !c.lease.Take(more) {
		return nil, errNoMemory
	} else if more < 0 {
		c.lease.Give(-more)
	}
	return slices.Grow(buffer(rc), size), nil
}

// buffer takes the response's own buffer, emptied, to append a body to. It goes
// back with send.
func buffer(rc *fasthttp.RequestCtx) []byte {
	return rc.Response.SwapBody(nil)[:0]
}

// send answers with a JSON body, which it takes over.
func send(rc *fasthttp.RequestCtx, status int, body []byte) {
	rc.SetStatusCode(status)
	rc.Response.Header.SetContentType("application/json")
	if cap(body) > keepBytes {
		rc.Response.SetBodyRaw(body) // not kept for the next answer
		return
	}
	rc.Response.SwapBody(body)
}
