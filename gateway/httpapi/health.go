package httpapi

import "github.com/gofiber/fiber/v2"

const healthPath = "/health"

// health answers GET /health: whether new queries should come here.
func (s *Server) health(c *fiber.Ctx) error {
	status, body := fiber.StatusOK, `{"status":"ok"}`
	if s.draining.Load() {
		status, body = fiber.StatusServiceUnavailable, `{"status":"draining"}`
	}
	send(c.Context(), status, append(buffer(c.Context()), body...))
	return nil
}
