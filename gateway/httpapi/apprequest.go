package httpapi

import (
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/serving"
)

// appRequest is what every request to an app says, whatever it asks for.
type appRequest struct {
	who      admission.Caller
	app      *serving.App
	received time.Time
	timeout  time.Duration // of the header; 0: none
	priority int           // of the header, or of the caller if that is lower
	charged  int           // queries, or pieces of feedback, that limits have counted
	body     []byte        // inflated; it dies with the request
}

// onTheWay is how often an input or an output is there while a model is asked: here, in a frame,
// and with the sidecar, which in local mode is in this process.
const onTheWay = 3

// open reads a request as far as all of them are alike.
func (s *Server) open(c *fiber.Ctx) (r appRequest, err error) {
	if r, err = s.receive(c); err == nil && len(r.body) > smallBody {
		err = s.makeRoom(c.Context().Conn().(*conn), len(r.body), codec.Most(r.body, r.app))
	}
	return r, err
}

// receive reads a request. There is no room yet for what its body is decoded to.
func (s *Server) receive(c *fiber.Ctx) (r appRequest, err error) {
	rc := c.Context()
	r.received = rc.Time() // fasthttp's clock, read just before it called us
	if err = s.enter(rc, appName(c), &r); err != nil {
		return r, err
	}
	if r.timeout, err = headerTimeout(rc); err != nil {
		return r, err
	}
	nc := rc.Conn().(*conn)
	if nc.unread {
		if err := s.charge(&r, 1); err != nil {
			return r, err
		}
		defer func() { r.received = time.Now() }() // when it has arrived
	}
	r.body, err = s.body(rc, nc)
	return r, err
}

// makeRoom takes room for inputs of so many bytes, and waits until their text may be decoded.
func (s *Server) makeRoom(c *conn, text, inputs int) error {
	if !c.lease.Take(onTheWay * inputs) {
		return errNoMemory
	}
	if text > heavyBody {
		return s.takeSlot(c)
	}
	return nil
}

// enter finds the caller and the app of a request, if the one may ask the other.
func (s *Server) enter(rc *fasthttp.RequestCtx, name string, r *appRequest) (err error) {
	if r.who, err = s.admit(rc, name); err != nil {
		return err
	}
	if r.app, err = s.core.App(name); err != nil {
		return err
	}
	if err = s.admission.May(r.who, r.app); err != nil {
		return err
	}
	r.priority, err = headerPriority(rc)
	r.priority = max(r.priority, r.who.Priority())
	return err
}

// charge counts n queries, or pieces of feedback, against limits, but those that it counted before.
func (s *Server) charge(r *appRequest, n int) error {
	n = max(n, 1) - r.charged // an empty batch is a request, too
	if err := s.admission.Charge(r.who, r.app, n, r.received); err != nil {
		return err
	}
	r.charged += n
	return nil
}

// admit finds the caller of a request to an app, if it may ask it.
func (s *Server) admit(rc *fasthttp.RequestCtx, app string) (admission.Caller, error) {
	return s.admission.Admit(shown(rc), app, rc.Time())
}

// asker finds the caller of a request about all apps.
func (s *Server) asker(rc *fasthttp.RequestCtx) (admission.Caller, error) {
	return s.admission.Asker(shown(rc), "", rc.Time())
}

// shown is the key that a request shows; empty: none.
func shown(rc *fasthttp.RequestCtx) []byte {
	h := &rc.Conn().(*conn).headers
	return access.Shown(h.key, h.authorization)
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
