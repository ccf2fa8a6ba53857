package httpapi

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"topsail/gateway/codec"
	"topsail/serving"
)

// predict answers POST /<app>/predict.
func (s *Server) predict(queries context.Context, c *fiber.Ctx) error {
	q, batch, err := s.readQuery(c)
	if err != nil {
		return err
	}
	if batch != nil {
		return s.predictBatch(queries, c, q, batch)
	}
	p, err := s.core.Predict(queries, q)
	if err != nil {
		return err
	}
	rc := c.Context()
	send(rc, fiber.StatusOK, codec.AppendPrediction(buffer(rc), p))
	return nil
}

// predictBatch answers a predict request for several inputs, each a query like q.
func (s *Server) predictBatch(queries context.Context, c *fiber.Ctx, q *serving.Query, batch []serving.Input) error {
	qs := make([]serving.Query, len(batch))
	for i, input := range batch {
		qs[i] = *q
		qs[i].Input = input
	}
	ps, err := s.core.PredictBatch(queries, qs)
	if err != nil {
		return err
	}
	rc := c.Context()
	send(rc, fiber.StatusOK, codec.AppendBatch(buffer(rc), ps))
	return nil
}

// readQuery reads the request as a query, or for a batch, which is else nil, as
// what its queries share.
func (s *Server) readQuery(c *fiber.Ctx) (*serving.Query, []serving.Input, error) {
	r, err := s.open(c)
	if err != nil {
		return nil, nil, err
	}
	p, err := codec.DecodePredict(r.body, r.app.InputType, s.config.MaxBatch)
	if err != nil {
		return nil, nil, err
	}
	return &serving.Query{
		App:      r.app.Name,
		Input:    p.Input,
		Received: r.received,
		Timeout:  shorter(r.timeout, p.Options.Timeout),
		User:     p.Options.User,
		Context:  p.Options.Context,
		Version:  p.Options.Version,
		Salt:     p.Options.Salt,
		NoCache:  p.Options.NoCache,
		Explain:  p.Options.Explain,
	}, p.Batch, nil
}
