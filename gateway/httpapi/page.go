package httpapi

import (
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/cors"
	"github.com/valyala/fasthttp"
)

// foreign refuses what pages of other sites have a browser send: a request by a name that is
// not ours, while no keys are asked for, because a name can be made to point here; and
// anything but a read from another origin that is not allowed.
func (s *Server) foreign(rc *fasthttp.RequestCtx, c *conn) *refusal {
	if s.config.Hosts != nil && !s.config.keysNeeded() && string(rc.Path()) != healthPath {
		if host := rc.Host(); string(host) != c.host {
			if !s.config.Hosts.Has(string(host)) {
				return &refusal{fiber.StatusForbidden, "Forbidden",
					"without keys this answers to localhost, the address that it listens on and gateway.hosts alone: call it by one of these, or set gateway.keys_file"}
			}
			c.host = string(host)
		}
	}
	h := &rc.Request.Header
	origin, site := h.Peek(fiber.HeaderOrigin), h.Peek("Sec-Fetch-Site")
	if len(origin) == 0 && len(site) == 0 { // no browser
		return nil
	}
	r := http.Request{Method: string(rc.Method()), Host: string(rc.Host()), Header: http.Header{}}
	r.Header.Set("Origin", string(origin))
	r.Header.Set("Sec-Fetch-Site", string(site))
	if s.origins.Check(&r) != nil {
		return &refusal{fiber.StatusForbidden, "Forbidden", "pages of another site may not ask here: add their origin to gateway.allowed_origins if they should"}
	}
	return nil
}

// crossOrigin answers browsers for pages of the origins that are allowed.
func crossOrigin(origins []string) fiber.Handler {
	return cors.New(cors.Config{
		AllowOrigins: strings.Join(origins, ","), AllowMethods: "GET,POST",
		AllowHeaders:  strings.Join([]string{fiber.HeaderContentType, fiber.HeaderAuthorization, "X-Api-Key", timeoutHeader, requestIDHeader, timingHeader}, ","),
		ExposeHeaders: strings.Join([]string{requestIDHeader, serverTimingHeader, fiber.HeaderRetryAfter, retryAfterMs}, ","),
		MaxAge:        600,
	})
}
