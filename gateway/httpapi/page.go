package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/cors"
	"github.com/valyala/fasthttp"
)

// foreign refuses what pages of other sites have a browser send: a request by a name that is
// not ours, while no keys are asked for, because a name can be made to point here; and
// anything but a read from another origin that is not allowed.
func (s *Server) foreign(rc *fasthttp.RequestCtx, c *conn) *refusal {
	if s.config.Hosts != nil && !s.admission.AllNeedKeys() && string(rc.Path()) != healthPath {
		if host := rc.Host(); string(host) != c.host {
			if !s.config.Hosts.Has(string(host)) {
				return &refusal{fiber.StatusForbidden, "Forbidden",
					"without keys, the gateway answers only at localhost, its listen address and gateway.hosts: use one of these, or set gateway.keys_file"}
			}
			c.host = string(host)
		}
	}
	origin, site := c.headers.origin, c.headers.site
	if len(origin) == 0 && len(site) == 0 { // no browser
		return nil
	}
	r := http.Request{Method: string(rc.Method()), Host: string(rc.Host()), Header: http.Header{}}
	r.Header.Set("Origin", string(origin))
	r.Header.Set("Sec-Fetch-Site", string(site))
	if s.origins.Check(&r) != nil {
		return &refusal{fiber.StatusForbidden, "Forbidden", "pages of another origin may not send requests: add the origin to gateway.allowed_origins to allow them"}
	}
	return nil
}

// exposedHeaders are those of answers that pages of allowed origins may read.
const exposedHeaders = requestIDHeader + "," + serverTimingHeader + "," + fiber.HeaderRetryAfter + "," + retryAfterMs

// allowed says whether a request is from a page of an origin that is allowed.
func (s *Server) allowed(rc *fasthttp.RequestCtx) bool {
	origin := string(rc.Request.Header.Peek(fiber.HeaderOrigin))
	return origin != "" && slices.ContainsFunc(s.config.AllowedOrigins, func(o string) bool { return strings.EqualFold(o, origin) })
}

// asksFirst says whether a browser asks what an allowed page may send, and sends nothing yet.
func (s *Server) asksFirst(rc *fasthttp.RequestCtx) bool {
	return rc.IsOptions() && len(rc.Request.Header.Peek(fiber.HeaderAccessControlRequestMethod)) > 0 && s.allowed(rc)
}

// readable allows a page of an allowed origin to read a refusal before crossOrigin.
func (s *Server) readable(rc *fasthttp.RequestCtx) {
	if s.allowed(rc) {
		h := &rc.Response.Header
		h.SetBytesV(fiber.HeaderAccessControlAllowOrigin, rc.Request.Header.Peek(fiber.HeaderOrigin))
		h.Set(fiber.HeaderAccessControlExposeHeaders, exposedHeaders)
		h.Add(fiber.HeaderVary, fiber.HeaderOrigin)
	}
}

// crossOrigin answers browsers for pages of the origins that are allowed.
func crossOrigin(origins []string) fiber.Handler {
	return cors.New(cors.Config{
		AllowOrigins: strings.Join(origins, ","), AllowMethods: "GET,POST",
		AllowHeaders:  strings.Join([]string{fiber.HeaderContentType, fiber.HeaderAuthorization, "X-Api-Key", timeoutHeader, priorityHeader, requestIDHeader, timingHeader}, ","),
		ExposeHeaders: exposedHeaders,
		MaxAge:        600,
	})
}
