package httpapi

import (
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// appRequest is what every request to an app says, whatever it asks for.
type appRequest struct {
	who      caller
	app      *serving.App
	received time.Time
	timeout  time.Duration // of the header; 0: none
	charged  int           // queries, or pieces of feedback, that limits have counted
	body     []byte        // inflated; it dies with the request
}

// onTheWay is how often an input or an output is there while a model is asked: here, in a frame,
// and with the sidecar, which in local mode is in this process.
const onTheWay = 3

// open reads a request as far as all of them are alike.
func (s *Server) open(c *fiber.Ctx) (r appRequest, err error) {
	rc := c.Context()
	r.received = rc.Time() // fasthttp's clock, read just before it called us
	name := appName(c)
	if r.who, err = s.admit(rc, name); err != nil {
		return r, err
	}
	if r.app, err = s.core.App(name); err != nil {
		return r, err
	}
	if r.app.RequireKey && r.who == (caller{}) {
		return r, s.needKey(rc, name)
	}
	if r.timeout, err = headerTimeout(rc); err != nil {
		return r, err
	}
	nc := rc.Conn().(*conn)
	if nc.unread {
		if err := s.charge(rc, &r, 1); err != nil {
			return r, err
		}
		defer func() { r.received = time.Now() }() // when it has arrived
	}
	if r.body, err = s.body(rc, nc); err != nil || len(r.body) <= smallBody {
		return r, err
	}
	if !nc.lease.Take(onTheWay * codec.Most(r.body, r.app.InputType)) {
		return r, errNoMemory
	}
	if len(r.body) > heavyBody {
		err = s.takeTurn(nc)
	}
	return r, err
}

// appName is the app that a path names. Of one that cannot be unescaped nothing is left,
// as there is no such app. It dies with the request.
func appName(c *fiber.Ctx) string {
	name := c.Params("app")
	if strings.IndexByte(name, '%') >= 0 {
		name, _ = url.PathUnescape(name)
	}
	return name
}
