package httpapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// refusal is an answer other than 200. Its text is for the client.
type refusal struct {
	status int
	class  string
	cause  string
}

func (r *refusal) Error() string { return r.cause }

// fail answers a request that ended in err. It is Fiber's error handler, and
// sees the errors of our handlers, of its router and of fasthttp's parser.
func (s *Server) fail(c *fiber.Ctx, err error) error {
	rc := c.Context()
	r := s.refusalOf(rc, err)
	if r == nil {
		s.internal(rc, "query failed", "error", err)
		return nil
	}
	sendRefusal(rc, r)
	return nil
}

// refusalOf is the one table from errors to answers. It returns nil for errors
// that are none of the client's business.
func (s *Server) refusalOf(rc *fasthttp.RequestCtx, err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if e, ok := errors.AsType[*codec.Error](err); ok {
		return &refusal{fiber.StatusBadRequest, codec.ErrorClass, e.Cause}
	}
	if e, ok := errors.AsType[*serving.QueryError](err); ok {
		return &refusal{fiber.StatusBadRequest, "Query processing error", e.Cause}
	}
	if errors.Is(err, errNoMemory) {
		return s.errNoRoom(rc)
	}
	if errors.Is(err, errNoTurn) {
		return s.errBusy(rc)
	}
	if errors.Is(err, serving.ErrUnknownApp) {
		return &refusal{fiber.StatusNotFound, "Unknown app", "no app of this name is registered: register it at the admin port, or check its spelling"}
	}
	if errors.Is(err, serving.ErrNoCatalog) {
		return &refusal{fiber.StatusServiceUnavailable, "Unavailable", "this gateway has not learned yet which apps there are: send the query again, or to another gateway"}
	}
	if errors.Is(err, serving.ErrUnjudged) {
		return &refusal{fiber.StatusServiceUnavailable, "Unavailable", "no model of this app answers now, so that the feedback cannot be judged: send it again when one does"}
	}
	if errors.Is(err, serving.ErrUnavailable) {
		return &refusal{fiber.StatusServiceUnavailable, "Unavailable", ailment(err) + "; send it again, nothing is lost by that"}
	}
	if s.draining.Load() && errors.Is(err, context.Canceled) {
		return &refusal{fiber.StatusServiceUnavailable, "Unavailable", "this gateway is stopping: send it again"}
	}
	if e, ok := errors.AsType[*fiber.Error](err); ok {
		return s.refusalOfCode(rc, e.Code)
	}
	return nil
}

// ailment says why feedback cannot be learned, in words that are for clients.
func ailment(err error) string {
	if e, ok := errors.AsType[*serving.Unwritable](err); ok {
		return "the store of what is learned takes no writes: " + e.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "there was not enough time: the store of what is learned, or models that have to be retried, did not answer"
	}
	return "the store of what is learned cannot be reached"
}

// refusalOfCode is the table for what Fiber and fasthttp refuse. Their own texts
// are not shown: they quote the request and our insides.
func (s *Server) refusalOfCode(rc *fasthttp.RequestCtx, code int) *refusal {
	switch code {
	case fiber.StatusNotFound:
		return &refusal{code, "Not found", "there is nothing at this path: use POST /<app>/predict, POST /<app>/update, GET /openapi.json, GET /metrics or GET /health"}
	case fiber.StatusMethodNotAllowed:
		return &refusal{code, "Method not allowed", fmt.Sprintf("this path takes %s only", rc.Response.Header.Peek(fiber.HeaderAllow))}
	case fiber.StatusRequestTimeout:
		return &refusal{code, "Request timeout", fmt.Sprintf("the request did not arrive within %v", s.config.ReadTimeout)}
	case fiber.StatusRequestEntityTooLarge:
		return s.errTooLarge()
	case fiber.StatusRequestHeaderFieldsTooLarge:
		return &refusal{code, "Header too large", fmt.Sprintf("the request's headers have more than %d bytes: send fewer or shorter ones", maxHeaderBytes)}
	}
	return &refusal{fiber.StatusBadRequest, "Bad request", "this is not a valid HTTP request"}
}

// internal answers a request on which we failed. Only the log says how.
func (s *Server) internal(rc *fasthttp.RequestCtx, message string, attrs ...any) {
	id := requestID(rc)
	s.log.Error(message, append(attrs, "request_id", id, "path", string(rc.Path()))...)
	sendRefusal(rc, &refusal{fiber.StatusInternalServerError, "Internal error",
		"the gateway failed on this query: its log says why, under request id " + id})
}

func sendRefusal(rc *fasthttp.RequestCtx, r *refusal) {
	send(rc, r.status, codec.AppendError(buffer(rc), r.class, r.cause))
}
