package httpapi

import (
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"topsail/serving"
)

// appRequest is what every request to an app says, whatever it asks for.
type appRequest struct {
	app      *serving.App
	received time.Time
	timeout  time.Duration // of the header; 0: none
	body     []byte        // inflated; it dies with the request
}

// open reads a request as far as all of them are alike.
func (s *Server) open(c *fiber.Ctx) (r appRequest, err error) {
	rc := c.Context()
	r.received = rc.Time() // fasthttp's clock, read just before it called us
	if r.app, err = s.app(c.Params("app")); err != nil {
		return r, err
	}
	if r.timeout, err = headerTimeout(rc); err != nil {
		return r, err
	}
	r.body, err = s.body(&rc.Request)
	return r, err
}

// app finds the app that a path names.
func (s *Server) app(name string) (*serving.App, error) {
	if strings.IndexByte(name, '%') >= 0 {
		unescaped, err := url.PathUnescape(name)
		if err != nil {
			return nil, serving.ErrUnknownApp
		}
		name = unescaped
	}
	return s.core.App(name)
}
