package httpapi

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// predict answers POST /<app>/predict.
func (s *Server) predict(queries context.Context, c *fiber.Ctx) error {
	q, batch, err := s.readQuery(c)
	if err != nil {
		return err
	}
	if wantsParts(c.Context()) {
		if batch != nil {
			return errPartsOfMany
		}
		return s.predictParts(queries, c, q)
	}
	there := c.Context().Conn().(*conn).present(queries)
	defer there.end()
	if wantsTiming(c.Context()) {
		return s.predictTimed(there, c, each(q, batch))
	}
	if batch != nil {
		return s.predictBatch(there, c, each(q, batch))
	}
	p, err := s.core.Predict(there, q)
	if err != nil {
		return err
	}
	rc := c.Context()
	b, err := s.growReservation(rc, q.App, p)
	if err != nil {
		return err
	}
	send(rc, fiber.StatusOK, codec.AppendPrediction(b, p))
	return nil
}

// each is the queries of a request: one for each input of a batch, or q alone.
func each(q *serving.Query, batch []serving.Input) []serving.Query {
	if batch == nil {
		return []serving.Query{*q}
	}
	qs := make([]serving.Query, len(batch))
	for i, input := range batch {
		qs[i] = *q
		qs[i].Input = input
	}
	return qs
}

// appNameOf is the one that all queries of a request are for; there may be none of them.
func appNameOf(qs []serving.Query) string {
	if len(qs) == 0 {
		return ""
	}
	return qs[0].App
}

// predictBatch answers a predict request for several inputs.
func (s *Server) predictBatch(queries context.Context, c *fiber.Ctx, qs []serving.Query) error {
	ps, err := s.core.PredictBatch(queries, qs)
	if err != nil {
		return err
	}
	rc := c.Context()
	b, err := s.growReservation(rc, appNameOf(qs), ps...)
	if err != nil {
		return err
	}
	send(rc, fiber.StatusOK, codec.AppendBatch(b, ps))
	return nil
}

// readQuery reads the request as a query, or for a batch, which is else nil, as
// what its queries share.
func (s *Server) readQuery(c *fiber.Ctx) (*serving.Query, []serving.Input, error) {
	r, err := s.open(c)
	if err != nil {
		return nil, nil, err
	}
	p, err := codec.DecodePredict(r.body, r.app, s.config.MaxBatch)
	s.releaseSlot(c.Context().Conn().(*conn))
	if err != nil {
		return nil, nil, err
	}
	if err := s.charge(&r, len(p.Batch)); err != nil {
		return nil, nil, err
	}
	if err := s.reserveAnswer(c.Context(), r.app.Name, len(p.Batch)); err != nil {
		return nil, nil, err
	}
	return &serving.Query{
		App:      r.app.Name,
		Input:    p.Input,
		Received: r.received,
		Timeout:  serving.ShorterTimeout(r.timeout, p.Options.Timeout),
		User:     p.Options.User,
		Context:  p.Options.Context,
		Version:  p.Options.Version,
		Salt:     p.Options.Salt,
		NoCache:  p.Options.NoCache,
		Explain:  p.Options.Explain,

		Candidates: p.Options.Candidates,
	}, p.Batch, nil
}
