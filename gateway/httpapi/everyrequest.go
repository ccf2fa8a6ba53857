package httpapi

import (
	"bytes"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/internal/connlimit"
)

// keepBytes is the largest body buffer that a connection keeps for its next
// request or answer. Without a bound, each idle connection would hold on to the
// largest body it ever carried.
const keepBytes = 64 << 10

// everyRequest wraps the handling of every request with what must hold for all.
func (s *Server) everyRequest(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		defer rc.Request.ReleaseBody(keepBytes)
		defer s.recovered(rc)
		knownMethod(rc)
		announced(&rc.Request.Header)
		c := rc.Conn().(*conn)
		c.headers.read(&rc.Request.Header)
		c.unread = rc.Request.IsBodyStream() && s.comesLater(&rc.Request.Header)
		c.place.Busy()
		c.room = 0
		defer s.releaseSlot(c)
		switch r := s.foreign(rc, c); {
		case s.asksFirst(rc): // else the page could not read the refusal of what it asks then
			next(rc)
		case r != nil:
			s.readable(rc)
			sendRefusal(rc, r)
		case c.place.Spare && string(rc.Path()) != healthPath:
			rc.SetConnectionClose()
			s.readable(rc)
			rc.Response.Header.Set(fiber.HeaderRetryAfter, "1")
			sendRefusal(rc, &refusal{fiber.StatusServiceUnavailable, "Too many connections",
				"this gateway is at its connection limit and busy with all connections: send the request again in a second, or to another gateway"})
			s.countClosed(connlimit.Full)
		default:
			next(rc)
		}
		if c.unread { // it is refused, and the rest of it would be taken for the next request
			rc.SetConnectionClose()
			c.linger.Store(true)
		}
		if id := clientRequestID(rc); id != nil {
			rc.Response.Header.SetBytesV(requestIDHeader, id)
		}
		if s.draining.Load() {
			rc.SetConnectionClose()
		}
	}
}

// knownMethod turns a method that Fiber does not know, and answers in its own
// way, into one that it knows and no route has.
func knownMethod(rc *fasthttp.RequestCtx) {
	if !slices.Contains(fiber.DefaultMethods, string(rc.Method())) {
		rc.Request.Header.SetMethod(fiber.MethodPatch)
	}
}

// recovered turns a panic of the request's handler into an answer.
func (s *Server) recovered(rc *fasthttp.RequestCtx) {
	if v := recover(); v != nil {
		rc.Response.Reset()
		rc.SetConnectionClose() // the rest of the request may be still to come
		sendRefusal(rc, s.internal(rc, "query panicked", "panic", v, "stack", string(debug.Stack())))
	}
}

// chunked is what fasthttp says of the length of a body that comes in chunks.
const chunked = -1

// announcedLength is a header of our own: the length of a body that is read later.
const announcedLength = "Topsail-Announced-Length"

// header is fasthttp's hook for headers that were read. It closes the connection behind a
// request that has two lengths, as RFC 9112 section 6.3 asks: a proxy before us may have
// trusted the other one. A large body is for fasthttp one in chunks until it calls us, which
// are the only ones of which it reads nothing before.
func (s *Server) header(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	switch n := h.ContentLength(); {
	case n == chunked:
		h.Del(announcedLength) // a client's
		if bytes.Contains(bytes.ToLower(h.RawHeaders()), []byte("content-length:")) {
			h.SetConnectionClose()
		}
	case s.comesLater(h):
		h.SetContentLength(chunked)
		h.Set(announcedLength, strconv.Itoa(n))
	}
	return c
}

// announced gives a body its length back.
func announced(h *fasthttp.RequestHeader) {
	if h.ContentLength() != chunked {
		return
	}
	if n, err := strconv.Atoi(string(h.Peek(announcedLength))); err == nil {
		h.Del(announcedLength)
		h.SetContentLength(n)
	}
}
