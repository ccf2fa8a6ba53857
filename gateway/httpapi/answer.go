package httpapi

import "github.com/valyala/fasthttp"

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
