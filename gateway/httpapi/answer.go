package httpapi

import (
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/serving"
)

// expect takes room for n answers, or one, of an app whose answers are large: while they are
// on their way, they take memory already.
func (s *Server) expect(rc *fasthttp.RequestCtx, app string, n int) error {
	g := s.admission.Load().apps[app]
	if g == nil {
		return nil
	}
	room := int(g.large.Load()) * max(n, 1)
	if room > 0 && !rc.Conn().(*conn).lease.Take(room) {
		return errNoMemory
	}
	rc.Conn().(*conn).room = room
	return nil
}

// room is a buffer for the answers to a request, which the budget has room for beside the
// outputs themselves.
func (s *Server) room(rc *fasthttp.RequestCtx, app string, ps ...serving.Prediction) ([]byte, error) {
	size, largest := 0, 0
	for i := range ps {
		size += len(ps[i].Output)
		largest = max(largest, len(ps[i].Output))
	}
	s.learnSize(app, onTheWay*2*largest)
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

// learnSize remembers how large the answers of an app are: at once what is more, and after
// some answers what is less.
func (s *Server) learnSize(app string, size int) {
	g := s.admission.Load().apps[app]
	if g == nil {
		return
	}
	before := g.large.Load()
	now := max(int64(size), before-before/8)
	if now <= onTheWay*2*smallBody {
		now = 0
	}
	if now != before {
		g.large.Store(now)
	}
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
