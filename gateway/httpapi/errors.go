package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/internal/access"
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
	sendRefusal(c.Context(), s.refusalOf(c.Context(), err))
	return nil
}

// refusalOf is the one table from errors to answers. Errors that clients may not see are logged.
func (s *Server) refusalOf(rc *fasthttp.RequestCtx, err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if r, ok := admission.Refused(err); ok {
		return s.refusalOfReason(rc, r)
	}
	if e, ok := errors.AsType[*inference.NoPrediction](err); ok {
		return &refusal{statusOf(e.Cause), "No prediction", e.Explanation}
	}
	if e, ok := errors.AsType[*inference.NotLoaded](err); ok && e.Later {
		return &refusal{fiber.StatusServiceUnavailable, "Starting", e.Text}
	} else if ok {
		return &refusal{fiber.StatusBadRequest, "Keeps replicas", e.Text}
	}
	if e, ok := errors.AsType[*inference.UnknownVersion](err); ok {
		return &refusal{fiber.StatusNotFound, "Unknown version", e.Error()}
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
	if errors.Is(err, errNoSlot) {
		return s.errBusy(rc)
	}
	if errors.Is(err, serving.ErrUnknownApp) {
		return &refusal{fiber.StatusNotFound, "Unknown app", "no app of this name is registered: register it at the admin port, or check its spelling"}
	}
	if errors.Is(err, serving.ErrNoCatalog) {
		return &refusal{fiber.StatusServiceUnavailable, "Unavailable", "this gateway has not loaded the apps yet: send the query again, or to another gateway"}
	}
	if errors.Is(err, serving.ErrUnjudged) {
		return &refusal{fiber.StatusServiceUnavailable, "Unavailable", "no model of this app answers now, so the feedback cannot be evaluated: send it again when one does"}
	}
	if errors.Is(err, serving.ErrUnavailable) {
		return &refusal{fiber.StatusServiceUnavailable, "Unavailable", ailment(err) + "; send it again, which is safe"}
	}
	if errors.Is(err, errGone) {
		rc.SetConnectionClose()
		return &refusal{statusGone, "Client gone", err.Error()} // which is not read
	}
	if s.draining.Load() && errors.Is(err, context.Canceled) {
		return &refusal{fiber.StatusServiceUnavailable, "Unavailable", "this gateway is stopping: send it again"}
	}
	if e, ok := errors.AsType[*fiber.Error](err); ok {
		return s.refusalOfCode(rc, e.Code)
	}
	return s.internal(rc, "query failed", "error", err)
}

// statusGone is what access logs have for a client that did not wait.
const statusGone = 499

// retryAfterMs says to the millisecond what Retry-After says to the second.
const retryAfterMs = "Retry-After-Ms"

// refusalOfReason is the table for what admission refuses.
func (s *Server) refusalOfReason(rc *fasthttp.RequestCtx, r *admission.Refusal) *refusal {
	switch r.Reason {
	case admission.NoKey, admission.WrongKey:
		rc.Response.Header.Set(fiber.HeaderWWWAuthenticate, access.Challenge)
		return &refusal{fiber.StatusUnauthorized, access.Unauthorized, r.Cause}
	case admission.Forbidden:
		return &refusal{fiber.StatusForbidden, "Forbidden", r.Cause}
	}
	rc.Response.Header.Set(fiber.HeaderRetryAfter, strconv.FormatInt(int64(math.Ceil(r.Wait.Seconds())), 10))
	rc.Response.Header.Set(retryAfterMs, strconv.FormatInt(admission.Milliseconds(r.Wait), 10))
	return &refusal{fiber.StatusTooManyRequests, "Too many queries", r.Cause}
}

// errNoRoom refuses a request that the budget has no room for. It is counted for all apps
// together, as it may be for none of them.
func (s *Server) errNoRoom(rc *fasthttp.RequestCtx) *refusal {
	s.admission.Count("", admission.Memory)
	rc.Response.Header.Set(fiber.HeaderRetryAfter, "1")
	return &refusal{fiber.StatusServiceUnavailable, "No memory",
		"requests and answers in progress use all of their memory: send the request again in a second, or raise max_inflight_bytes"}
}

// errBusy refuses a request whose body would take too long to read, among others like it.
func (s *Server) errBusy(rc *fasthttp.RequestCtx) *refusal {
	s.admission.Count("", admission.Busy)
	rc.Response.Header.Set(fiber.HeaderRetryAfter, "1")
	return &refusal{fiber.StatusServiceUnavailable, "Busy",
		fmt.Sprintf("too many bodies above %d KiB are being read, and this one was not read within %v: send it again in a second, or to another gateway", heavyBody>>10, slotWithin)}
}

// ailment says why feedback cannot be learned, in words that are for clients.
func ailment(err error) string {
	if e, ok := errors.AsType[*serving.Unwritable](err); ok {
		return "the state store accepts no writes: " + e.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the time ran out: the state store, or models that had to be called again, did not answer"
	}
	return "the state store cannot be reached"
}

// refusalOfCode is the table for what Fiber and fasthttp refuse. Their own texts
// are not shown: they quote the request and our insides.
func (s *Server) refusalOfCode(rc *fasthttp.RequestCtx, code int) *refusal {
	switch code {
	case fiber.StatusNotFound:
		return &refusal{code, "Not found", "this path does not exist: use POST /<app>/predict, POST /<app>/update, POST /v2/models/<app>/infer, GET /openapi.json, GET /metrics or GET /health"}
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

// internal is the answer to a request on which we failed. Only the log says how.
func (s *Server) internal(rc *fasthttp.RequestCtx, message string, attrs ...any) *refusal {
	id := requestID(rc)
	s.log.Error(message, append(attrs, "request_id", id, "path", string(rc.Path()))...)
	return &refusal{fiber.StatusInternalServerError, "Internal error", "the gateway failed on this query: its log says why, under request id " + id}
}

func sendRefusal(rc *fasthttp.RequestCtx, r *refusal) {
	send(rc, r.status, codec.AppendError(buffer(rc), r.class, r.cause))
}
