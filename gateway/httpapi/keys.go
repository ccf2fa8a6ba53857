package httpapi

import (
	"github.com/gofiber/fiber/v2"

	"topsail/internal/access"
)

// keyed asks for a key before next, if there are keys.
func (s *Server) keyed(next fiber.Handler) fiber.Handler {
	keys := s.config.Keys
	if keys == nil {
		return next
	}
	return func(c *fiber.Ctx) error {
		rc := c.Context()
		if _, ok := keys.Check(rc.Request.Header.Peek("X-Api-Key"), rc.Request.Header.Peek(fiber.HeaderAuthorization)); !ok {
			rc.Response.Header.Set(fiber.HeaderWWWAuthenticate, access.Challenge)
			return &refusal{fiber.StatusUnauthorized, access.Unauthorized, access.NeedKey}
		}
		return next(c)
	}
}
