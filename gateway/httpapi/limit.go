package httpapi

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// retryAfterMs says to the millisecond what Retry-After says to the second.
const retryAfterMs = "Retry-After-Ms"

// charge counts n queries, or pieces of feedback, against the limits of the key and of
// the app: against both or, if one is exceeded, against neither.
func (s *Server) charge(rc *fasthttp.RequestCtx, r *appRequest, n int) error {
	if r.who.limit == nil && r.app.Limit == nil {
		return nil
	}
	n = max(n, 1) // an empty batch is a request, too
	g := s.admission.Load().gate(r.app.Name)
	if wait := r.who.limit.take(r.received, n); wait > 0 {
		return tooMany(rc, g, wait, fmt.Sprintf("the key %q", r.who.name), r.who.limit)
	}
	if wait := g.limit.take(r.received, n); wait > 0 {
		r.who.limit.give(n)
		return tooMany(rc, g, wait, fmt.Sprintf("the app %q", r.app.Name), g.limit)
	}
	return nil
}

// tooMany refuses a request that came too early, and says when to send it again.
func tooMany(rc *fasthttp.RequestCtx, g *gate, wait time.Duration, whose string, b *bucket) error {
	g.refused[limited].Inc()
	ms := (wait + time.Millisecond - 1) / time.Millisecond
	rc.Response.Header.Set(fiber.HeaderRetryAfter, strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10))
	rc.Response.Header.Set(retryAfterMs, strconv.FormatInt(int64(ms), 10))
	return &refusal{fiber.StatusTooManyRequests, "Too many queries",
		fmt.Sprintf("%s has a limit of %.6g queries a second, and %.6g at once, at each gateway: send it again in %d ms", whose, b.limit.PerSecond, b.burst, ms)}
}
