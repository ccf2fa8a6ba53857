package httpapi

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// received is Clipper's answer to feedback, which is not valid JSON.
const received = "Feedback received? 1"

// update answers POST /<app>/update. As with Clipper, the answer is a sentence, and so
// is the refusal of a bad request; clients that accept JSON get objects.
func (s *Server) update(queries context.Context, c *fiber.Ctx) error {
	rc := c.Context()
	learned, batch, err := s.learn(queries, c)
	switch asJSON := accepts(rc, "application/json"); {
	case err != nil && asJSON:
		return err
	case err != nil:
		return s.failPlainly(rc, err)
	case !asJSON:
		send(rc, fiber.StatusOK, append(buffer(rc), received...))
	case batch:
		send(rc, fiber.StatusOK, codec.AppendLearnedBatch(buffer(rc), learned))
	default:
		send(rc, fiber.StatusOK, codec.AppendLearned(buffer(rc), &learned[0]))
	}
	return nil
}

// learn reads the request's feedback, whether it is a batch, and hands it on.
func (s *Server) learn(queries context.Context, c *fiber.Ctx) ([]serving.Learned, bool, error) {
	if s.updater == nil {
		return nil, false, &refusal{fiber.StatusNotFound, "Not found", "feedback is not served here"}
	}
	r, err := s.open(c)
	if err != nil {
		return nil, false, err
	}
	u, err := codec.DecodeUpdate(r.body, r.app, s.config.MaxBatch)
	s.releaseSlot(c.Context().Conn().(*conn))
	if err != nil {
		return nil, false, err
	}
	if err := s.charge(&r, len(u.Feedback)); err != nil {
		return nil, false, err
	}
	for i := range u.Feedback {
		f := &u.Feedback[i]
		f.App, f.Received, f.Timeout = r.app.Name, r.received, r.timeout
	}
	learned, err := s.updater.Feedback(queries, u.Feedback)
	if err == nil && len(learned) != len(u.Feedback) {
		err = errors.New("the updater did not answer each piece of feedback")
	}
	return learned, u.Batch, err
}

// failPlainly says what is wrong with a request without an object around it. It
// leaves all other errors to fail.
func (s *Server) failPlainly(rc *fasthttp.RequestCtx, err error) error {
	r := s.refusalOf(rc, err)
	if r.status != fiber.StatusBadRequest {
		return r
	}
	send(rc, r.status, append(buffer(rc), r.cause...))
	return nil
}
