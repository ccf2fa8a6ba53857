package httpapi

import (
	"slices"

	"github.com/valyala/fasthttp"

	"topsail/serving"
)

// room is a buffer for the answers to a request, which the budget has room for beside the
// outputs themselves.
func (s *Server) room(rc *fasthttp.RequestCtx, ps ...serving.Prediction) ([]byte, error) {
	size := 0
	for i := range ps {
		size += len(ps[i].Output)
	}
	if size <= smallBody {
		return buffer(rc), nil
	}
	size += smallBody + len(ps)*128
	if !rc.Conn().(*conn).lease.Take(2 * size) {
		return nil, errNoMemory
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
