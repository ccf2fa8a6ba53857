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

// charge counts n queries, or pieces of feedback, of a request against the limits of the key
// and of the app, but those that it counted before: against both or, if one is exceeded,
// against neither.
func (s *Server) charge(rc *fasthttp.RequestCtx, r *appRequest, n int) error {
	if r.who.limit == nil && r.app.Limit == nil {
		return nil
	}
	if n = max(n, 1) - r.charged; n == 0 { // an empty batch is a request, too
		return nil
	}
	g := s.admission.Load().gate(r.app.Name)
	if wait := r.who.limit.take(r.received, n); wait > 0 {
		return tooMany(rc, g, wait, fmt.Sprintf("the key %q", r.who.name), r.who.limit)
	}
	if wait := g.limit.take(r.received, n); wait > 0 {
		r.who.limit.give(n)
		return tooMany(rc, g, wait, fmt.Sprintf("the app %q", r.app.Name), g.limit)
	}
	r.charged += n
	return nil
}

// errNoRoom refuses a request that the budget has no room for. It is counted for all apps
// together, as it may be for none of them.
func (s *Server) errNoRoom(rc *fasthttp.RequestCtx) *refusal {
	s.admission.Load().unknown.refused()[memory].Inc()
	rc.Response.Header.Set(fiber.HeaderRetryAfter, "1")
	return &refusal{fiber.StatusServiceUnavailable, "No memory",
		"the requests and answers under way have all the memory that there is for them: send it again in a second, or raise max_inflight_bytes"}
}

// errBusy refuses a request whose body would take too long to read, among others like it.
func (s *Server) errBusy(rc *fasthttp.RequestCtx) *refusal {
	s.admission.Load().unknown.refused()[busy].Inc()
	rc.Response.Header.Set(fiber.HeaderRetryAfter, "1")
	return &refusal{fiber.StatusServiceUnavailable, "Busy",
		fmt.Sprintf("so many bodies above %d KiB are being read that this one has had no turn within %v: send it again in a second, or to another gateway", heavyBody>>10, turnWithin)}
}

// tooMany refuses a request that came too early, and says when to send it again.
func tooMany(rc *fasthttp.RequestCtx, g *gate, wait time.Duration, whose string, b *bucket) error {
	g.refused()[limited].Inc()
	ms := (wait + time.Millisecond - 1) / time.Millisecond
	rc.Response.Header.Set(fiber.HeaderRetryAfter, strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10))
	rc.Response.Header.Set(retryAfterMs, strconv.FormatInt(int64(ms), 10))
	return &refusal{fiber.StatusTooManyRequests, "Too many queries",
		fmt.Sprintf("%s has a limit of %.6g queries a second, and %.6g at once, at each gateway: send it again in %d ms", whose, b.limit.PerSecond, b.burst, ms)}
}
