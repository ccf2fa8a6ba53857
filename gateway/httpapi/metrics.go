package httpapi

import (
	"bytes"
	"fmt"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/topsail-serving/topsail/serving"
)

// metrics answers GET /metrics: with Clipper's page, or in Prometheus' format for
// clients that ask for it. Where a key is needed, it has to be one that may read all.
func (s *Server) metrics() fiber.Handler {
	prometheus := fasthttpadaptor.NewFastHTTPHandler(s.config.Metrics.Handler())
	return func(c *fiber.Ctx) error {
		rc := c.Context()
		const app = "" // it is about all of them
		who, err := s.admission.Identify(shown(rc), app, rc.Time())
		if err != nil {
			return err
		}
		if k := who.Key(); k != nil && (!k.Role.Covers(serving.RoleViewer) || len(k.Apps) > 0) {
			return s.admission.Forbid(app, fmt.Sprintf("the key %q may not read metrics, which cover all apps: use a key for all apps with the role viewer or above", k.Name))
		}
		if accepts(rc, "text/plain", "application/openmetrics-text") {
			prometheus(rc)
			return nil
		}
		send(rc, fiber.StatusOK, s.config.Inspect(buffer(rc)))
		return nil
	}
}

// accepts says whether the client has asked for one of these media types by its name.
// Most clients that have not ask for anything.
func accepts(rc *fasthttp.RequestCtx, mediaTypes ...string) bool {
	for accepted := range bytes.SplitSeq(rc.Request.Header.Peek(fiber.HeaderAccept), []byte{','}) {
		name, _, _ := bytes.Cut(accepted, []byte{';'})
		for _, want := range mediaTypes {
			if bytes.EqualFold(bytes.TrimSpace(name), []byte(want)) {
				return true
			}
		}
	}
	return false
}
