package httpapi

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// predict answers POST /<app>/predict.
func (s *Server) predict(queries context.Context, c *fiber.Ctx) error {
	rc := c.Context()
	r, err := s.open(c)
	if err != nil {
		return err
	}
	p, err := codec.DecodePredict(r.body, r.app, s.config.MaxBatch)
	s.releaseSlot(rc.Conn().(*conn))
	if err != nil {
		return err
	}
	p.App, p.Received, p.Timeout = r.app.Name, r.received, serving.ShorterTimeout(r.timeout, p.Timeout)
	p.Priority = max(r.priority, p.Priority)
	if err := s.charge(&r, len(p.Batch)); err != nil {
		return err
	}
	if wantsParts(rc) {
		return s.predictParts(queries, c, p)
	}
	timing := timingOf(rc)
	ps, b, err := s.ask(queries, rc, p.App, p.Queries(timing))
	if err != nil {
		return err
	}
	b = codec.AppendBatch(b, ps)
	sendTiming(rc, timing)
	send(rc, fiber.StatusOK, b)
	return nil
}

// ask takes room for the answers to queries to one app, and asks them. The buffer is for the answer.
func (s *Server) ask(queries context.Context, rc *fasthttp.RequestCtx, app string, qs []serving.Query) ([]serving.Prediction, []byte, error) {
	if err := s.reserveAnswer(rc, app, len(qs)); err != nil {
		return nil, nil, err
	}
	there := rc.Conn().(*conn).present(queries)
	defer there.end()
	ps, err := s.core.Predict(there, qs...)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.growReservation(rc, app, ps)
	return ps, b, err
}
